"""The declaration of a pipeline: sources, steps, sinks, and its settings. Frozen values; no I/O.

    topics -> sources -> steps (SQL over sources and other steps) -> sinks
        -> topics, Parquet, the console

Declared in a TOML file (`toml_file`), or in Python:

    Pipeline.read("orders", json="id int, amount double").sql("select ...").write("totals")

Each value validates itself; `graph` checks them together.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Concatenate, Final, Generic, ParamSpec

from aiokwire.errors import ConfigurationError
from aiokwire.spark.options import Delivery, parse_sink, parse_source
from aiokwire.units import duration_in_words

# A table's name in SQL, without quotes; a pipeline's or sink's name, used in folders and transactional ids.
TABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def texts(given: object, what: str) -> dict[str, str]:
    """Convert the values of options to text, as Spark takes them.

    Raises: ConfigurationError: it is not a table of names and scalar values.
    """
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"{what} must be names with values, not {given!r}")
    found = {}
    for name, value in given.items():
        if isinstance(value, bool):
            found[name] = str(value).lower()
        elif isinstance(value, (str, int, float)):
            found[name] = str(value)
        else:
            raise ConfigurationError(f"{what}: {name} must be a string, a number, true or false, not {value!r}")
    return found


@contextlib.contextmanager
def errors_of(owner: str) -> Iterator[None]:
    """Prefix errors raised in the block with the owner of the option."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{owner}: {error}") from None


def settle(value: object, field: str, settled: object) -> None:
    """Set a field of a frozen value to its final form."""
    object.__setattr__(value, field, settled)


def check_name(name: object, pattern: re.Pattern[str], owner: str) -> None:
    """Check a name; `pattern` is `TABLE` or `NAME`.

    Raises: ConfigurationError: the name does not match.
    """
    if not isinstance(name, str) or not pattern.fullmatch(name):
        allowed = "letters, digits and _" if pattern is TABLE else "letters, digits, _, . and -"
        raise ConfigurationError(f"{owner}: a name is made of {allowed}, not {name!r}")


def check_text(value: object, what: str, must: str) -> None:
    """Raises: ConfigurationError: it is not a string, or is empty."""
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{what} {must}, not {value!r}")


def check_bool(value: object, what: str) -> None:
    """Raises: ConfigurationError: it is neither."""
    if not isinstance(value, bool):
        raise ConfigurationError(f"{what} must be true or false, not {value!r}")


def check_choice(value: object, choices: tuple[str, ...], what: str) -> None:
    """Raises: ConfigurationError: it is none of them."""
    if value not in choices:
        raise ConfigurationError(f"{what} must be one of {', '.join(choices)}, not {value!r}")


def columns(given: object, what: str) -> tuple[str, ...]:
    """Return one or several names as a tuple.

    Raises: ConfigurationError: there is a value that is not a name.
    """
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, (list, tuple)) or not all(isinstance(name, str) and name for name in listed):
        raise ConfigurationError(f"{what} must be column names, not {given!r}")
    return tuple(listed)


P = ParamSpec("P")

MODES: Final = ("append", "update", "complete")
DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"

# The prefix of a step's default name.
_STEP: Final = "step"
_EVERY: Final = "every "


@dataclasses.dataclass(frozen=True)
class Watermark:
    """The most by which a row's time may be behind the latest time of a column."""

    column: str
    delay: str

    @classmethod
    def of(cls, given: object, owner: str) -> Watermark | None:
        """Parse `{column: delay}`; None stays None.

        Raises: ConfigurationError: it has another form.
        """
        if given is None or isinstance(given, cls):
            return given
        if not isinstance(given, Mapping) or len(given) != 1:
            raise ConfigurationError(f'{owner}: watermark must be one column and its delay, as {{at = "2 hours"}}')
        (column, delay), *_ = given.items()
        try:
            return cls(str(column), duration_in_words(str(delay)))
        except ValueError as error:
            raise ConfigurationError(f"{owner}: the delay of watermark {column!r} {error}") from None


@dataclasses.dataclass(frozen=True)
class Trigger:
    """When microbatches run: once over the available records, or periodically."""

    text: str = "available-now"
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=lambda: {"availableNow": True})
    """The arguments of Spark's `trigger`."""

    @classmethod
    def parse(cls, text: object) -> Trigger:
        """Parse `available-now`, `once` or `every 10 seconds`.

        Raises: ConfigurationError: it is none of them.
        """
        plain = text.strip().lower() if isinstance(text, str) else ""
        if plain == "available-now":
            return cls()
        if plain == "once":
            return cls(plain, {"once": True})
        if not plain.startswith(_EVERY):
            raise ConfigurationError(
                f"trigger must be available-now, once, or such as 'every 10 seconds', not {text!r}"
            )
        try:
            return cls(plain, {"processingTime": duration_in_words(plain.removeprefix(_EVERY))})
        except ValueError as error:
            raise ConfigurationError(f"trigger 'every <duration>' {error}") from None

    @property
    def ends(self) -> bool:
        """Whether the pipeline ends without a stop."""
        return "processingTime" not in self.arguments


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """A topic as a table: the fields of its decoded values, and the columns of every record."""

    name: str
    topic: str | None = None
    """Topics, separated by commas; by default the source's name, unless options choose them."""
    json: str | None = None
    """The values' schema, such as `id int, at timestamp`."""
    avro: str | None = None
    string: bool = False
    watermark: Watermark | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Of the Spark source."""

    def __post_init__(self) -> None:
        owner = f"source {self.name!r}"
        check_name(self.name, TABLE, owner)
        settle(self, "watermark", Watermark.of(self.watermark, owner))
        settle(self, "options", texts(self.options, f"{owner}: options"))
        chosen = [kind for kind in ("json", "avro") if getattr(self, kind) is not None]
        for kind in chosen:
            check_text(
                getattr(self, kind), f"{owner}: {kind}", "needs the schema of the values, as 'id int, at timestamp'"
            )
        check_bool(self.string, f"{owner}: string")
        if len(chosen) + self.string > 1:
            raise ConfigurationError(f"{owner}: give only one of json, avro and string for the values")
        if chosen and "value.format" in self.options:
            raise ConfigurationError(
                f"{owner}: {chosen[0]} and the option value.format set the same thing: give one of them"
            )
        if self.topic is None and not any(name.lower() in _CHOOSE_TOPICS for name in self.options):
            settle(self, "topic", self.name)
        elif self.topic is not None:
            check_text(self.topic, f"{owner}: topic", "must name a topic")

    def spark_options(self, bootstrap: str) -> dict[str, str]:
        """Return the options of the Spark source.

        Raises: ConfigurationError: an option is unknown, or has an invalid value.
        """
        found = {"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest"}
        if any(name.lower().startswith("starting") for name in self.options):
            del found["startingOffsets"]
        if self.topic is not None:
            found["subscribe"] = self.topic
        for kind in ("json", "avro"):
            if (schema := getattr(self, kind)) is not None:
                found |= {"value.format": kind, "value.schema": schema}
        if self.string:
            found["value.format"] = "string"
        found |= self.options
        with errors_of(f"source {self.name!r}"):
            parse_source(found, streaming=True)
        return found


_CHOOSE_TOPICS: Final = frozenset({"subscribe", "assign", "subscribepattern"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """A query over sources and other steps, by their names."""

    name: str
    sql: str
    watermark: Watermark | None = None

    def __post_init__(self) -> None:
        owner = f"step {self.name!r}"
        check_name(self.name, TABLE, owner)
        check_text(self.sql, f"{owner}: sql", "must be a query")
        settle(self, "watermark", Watermark.of(self.watermark, owner))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sink:
    """The target of a step's or source's rows: a topic, a folder of Parquet files, the console."""

    name: str
    from_: str
    topic: str | None = None
    parquet: str | None = None
    console: bool = False
    delivery: str = Delivery.AT_LEAST_ONCE.value
    key: str | None = None
    """A column or expression; by default the column `key`, if there is one."""
    mode: str = "append"
    tasks: int | None = None
    """The count of writing tasks; with exactly-once at most the topic's partitions."""
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Of the Spark sink."""

    def __post_init__(self) -> None:
        owner = f"sink {self.name!r}"
        check_name(self.name, NAME, owner)
        settle(self, "options", texts(self.options, f"{owner}: options"))
        settle(self, "partition_by", columns(self.partition_by, f"{owner}: partition_by"))
        check_bool(self.console, f"{owner}: console")
        kinds = [kind for kind in ("topic", "parquet", "console") if getattr(self, kind) not in (None, False)]
        if len(kinds) > 1:
            raise ConfigurationError(f"{owner}: choose one of {' and '.join(kinds)}")
        if not kinds:
            settle(self, "topic", self.name)
        for kind in ("from_", "topic", "parquet", "key"):
            if getattr(self, kind) is not None:
                check_text(getattr(self, kind), f"{owner}: {kind.rstrip('_')}", "must not be empty")
        check_choice(self.delivery, tuple(each.value for each in Delivery), f"{owner}: delivery")
        check_choice(self.mode, MODES, f"{owner}: mode")
        if self.tasks is not None and (type(self.tasks) is not int or self.tasks < 1):
            raise ConfigurationError(f"{owner}: tasks must be a positive number, not {self.tasks!r}")
        self._check_kind(owner)

    def _check_kind(self, owner: str) -> None:
        """Check for fields of other kinds of sinks."""
        kind = self.kind
        if kind != "topic":
            for field in ("key", "tasks"):
                if getattr(self, field) is not None:
                    raise ConfigurationError(f"{owner}: {field} belongs to a topic, not to {kind}")
            if self.exactly_once and kind == "console":
                raise ConfigurationError(f"{owner}: the console shows a repeated batch again: use at-least-once")
        if kind != "parquet" and self.partition_by:
            raise ConfigurationError(f"{owner}: partition_by belongs to parquet, not to {kind}")
        if kind == "parquet" and self.mode != "append":
            raise ConfigurationError(f"{owner}: files are only appended to: mode {self.mode} needs a topic")

    @property
    def kind(self) -> str:
        if self.topic is not None:
            return "topic"
        return "parquet" if self.parquet is not None else "console"

    @property
    def target(self) -> str:
        """Describe the target."""
        if self.topic is not None:
            return f"topic {self.topic}"
        return "the console" if self.parquet is None else f"parquet {self.parquet}"

    @property
    def exactly_once(self) -> bool:
        return self.delivery == Delivery.EXACTLY_ONCE.value

    def spark_options(self, bootstrap: str) -> dict[str, str]:
        """Return the options of the Spark sink, without those that depend on the checkpoint.

        Raises: ConfigurationError: an option is unknown, or has an invalid value.
        """
        if self.topic is None:
            return dict(self.options)
        own = {"topic": self.topic, "delivery": self.delivery}
        for name in self.options:
            if name.lower() in ("topic", "delivery", "run.id", "checkpointlocation"):
                raise ConfigurationError(f"sink {self.name!r}: {name} is not an option here: {_INSTEAD[name.lower()]}")
        found = {"kafka.bootstrap.servers": bootstrap, **own, **self.options}
        with errors_of(f"sink {self.name!r}"):
            parse_sink(found)
        return found


_INSTEAD: Final = {
    "topic": "set it beside options",
    "delivery": "set it beside options",
    "run.id": "it belongs to batch jobs",
    "checkpointlocation": "the pipeline has a checkpoint, with a folder for each sink",
}


class _Reads(Generic[P]):
    """`Pipeline.read(...)` begins a pipeline, `pipeline.read(...)` extends one."""

    def __init__(self, function: Callable[Concatenate[Pipeline, P], Pipeline]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, pipeline: Pipeline | None, owner: type[Pipeline]) -> Callable[P, Pipeline]:
        return functools.partial(self._function, owner() if pipeline is None else pipeline)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pipeline:
    """Sources, steps and sinks; each method returns a new pipeline."""

    name: str = ""
    """By default the file's."""
    bootstrap: str = ""
    checkpoint: str = ""
    """A folder; by default `checkpoints/<name>`."""
    trigger: Trigger = dataclasses.field(default_factory=Trigger)
    sources: tuple[Source, ...] = ()
    steps: tuple[Step, ...] = ()
    sinks: tuple[Sink, ...] = ()
    spark: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of the Spark session."""

    def __post_init__(self) -> None:
        if self.name:
            check_name(self.name, NAME, "pipeline")
        if not isinstance(self.trigger, Trigger):
            settle(self, "trigger", Trigger.parse(self.trigger))
        for field in ("bootstrap", "checkpoint"):
            if not isinstance(getattr(self, field), str):
                raise ConfigurationError(f"{field} must be a string, not {getattr(self, field)!r}")
        settle(self, "spark", texts(self.spark, "spark"))

    def set(
        self,
        *,
        name: str | None = None,
        bootstrap: str | None = None,
        checkpoint: str | None = None,
        trigger: str | None = None,
        spark: Mapping[str, Any] | None = None,
    ) -> Pipeline:
        """Change settings; None leaves one unchanged.

        Raises: ConfigurationError: a value is invalid.
        """
        given: dict[str, Any] = {"name": name, "bootstrap": bootstrap, "checkpoint": checkpoint, "spark": spark}
        given["trigger"] = None if trigger is None else Trigger.parse(trigger)
        return dataclasses.replace(self, **{field: value for field, value in given.items() if value is not None})

    @_Reads
    def read(
        self,
        topic: str,
        *,
        name: str | None = None,
        json: str | None = None,
        avro: str | None = None,
        string: bool = False,
        watermark: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Pipeline:
        """Add a source; its name in SQL is the topic's by default.

        Raises: ConfigurationError: an argument is invalid.
        """
        source = Source(
            name=name if name is not None else re.sub(r"\W", "_", topic),
            topic=topic, json=json, avro=avro, string=string,
            watermark=Watermark.of(watermark, f"source {topic!r}"), options=options or {},
        )  # fmt: skip
        return dataclasses.replace(self, sources=(*self.sources, source))

    def sql(self, query: str, *, name: str | None = None, watermark: Mapping[str, str] | None = None) -> Pipeline:
        """Add a step; `name` is its name in other steps.

        Raises: ConfigurationError: an argument is invalid.
        """
        name = f"{_STEP}{len(self.steps) + 1}" if name is None else name
        step = Step(name=name, sql=query, watermark=Watermark.of(watermark, f"step {name!r}"))
        return dataclasses.replace(self, steps=(*self.steps, step))

    def write(
        self,
        topic: str | None = None,
        *,
        name: str | None = None,
        from_: str | None = None,
        parquet: str | None = None,
        console: bool = False,
        delivery: str = Delivery.AT_LEAST_ONCE.value,
        key: str | None = None,
        mode: str = "append",
        tasks: int | None = None,
        partition_by: tuple[str, ...] = (),
        options: Mapping[str, Any] | None = None,
    ) -> Pipeline:
        """Add a sink of the last step or source, unless `from_` names another.

        Raises: ConfigurationError: an argument is invalid.
        """
        if name is None:
            name = topic or ("console" if parquet is None else parquet.rstrip("/").rpartition("/")[2])
        sink = Sink(
            name=name, from_=self.last if from_ is None else from_, topic=topic, parquet=parquet, console=console,
            delivery=delivery, key=key, mode=mode, tasks=tasks, partition_by=partition_by, options=options or {},
        )  # fmt: skip
        return dataclasses.replace(self, sinks=(*self.sinks, sink))

    @property
    def tables(self) -> tuple[Source | Step, ...]:
        """The sources and steps, which steps and sinks may name."""
        return (*self.sources, *self.steps)

    @property
    def last(self) -> str:
        """The name of the last step or source, the default input of a sink.

        Raises: ConfigurationError: the pipeline has no source yet.
        """
        if not self.steps and not self.sources:
            raise ConfigurationError("a pipeline begins with a source: add one before the sink")
        return (self.steps or self.sources)[-1].name
