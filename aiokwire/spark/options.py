"""The options of the source and the sink: spark-sql-kafka's and aiokwire's own, validated. No I/O.

`parse_source` and `parse_sink` convert Spark's options to a frozen value, which is pickled to the
tasks. Names are case-insensitive, as everywhere in Spark.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from aiokwire.cluster import ClientConfig
from aiokwire.errors import ConfigurationError
from aiokwire.spark.decode.options import Decoding, Format, Mode, Side
from aiokwire.spark.offsets import EARLIEST, LATEST, Kind, Place, parse_assign, parse_by_partition
from aiokwire.types import TopicPartition
from aiokwire.units import parse_duration, parse_size

if TYPE_CHECKING:
    from aiokwire.consumer import ConsumerConfig
    from aiokwire.producer import ProducerConfig

ConfigT = TypeVar("ConfigT", bound=ClientConfig)

PREFIX: Final = "kafka."

# Options that spark-sql-kafka refuses too, with the reason.
_REFUSED: Final = {
    "key.deserializer": "keys are bytes: decode them with the option key.format or in the query",
    "value.deserializer": "values are bytes: decode them with the option value.format or in the query",
    "key.serializer": "the column key holds bytes or a string",
    "value.serializer": "the column value holds bytes or a string",
    "auto.offset.reset": "set startingOffsets to choose where to start, and onDataLoss for data that is lost",
    "enable.auto.commit": "Spark's checkpoint has the offsets; commitGroup commits them after each batch",
    "interceptor.classes": "Java classes cannot run here",
    "on.deserialization.error": "keys and values are bytes: the option mode is for those that cannot be decoded",
    "transactional.id": "exactly-once delivery generates its own: see delivery and sink.id",
}
_TOKENS: Final = (
    "set kafka.sasl.oauthbearer.token.endpoint.url, with a client id and secret or a signed assertion; in AWS set "
    "kafka.sasl.mechanism=AWS_MSK_IAM"
)
# Python objects, with what to set in their place: Spark's options are text.
_OBJECTS: Final = {
    "oauth.cb": _TOKENS,
    "sasl.oauth.token.provider": _TOKENS,
    "sasl.credentials.provider": "set kafka.sasl.jaas.config, in which ${file:PATH:KEY} is replaced",
    "sasl.client.factory": "mechanisms of your own are for programs without Spark",
    "ssl.context": "set kafka.ssl.truststore.location and kafka.ssl.keystore.location",
}
_TEXT_OF_OBJECT: Final = re.compile(r"<.+ at 0x[0-9a-f]+>", re.DOTALL)


def client_options(options: Mapping[str, str], config: type[ConfigT], defaults: Mapping[str, Any]) -> ConfigT:
    """Return the config of a client from the `kafka.` options among `options` (lower-case names).

    Raises: ConfigurationError: an option is unknown or refused, or its value is invalid.
    """
    given: dict[str, Any] = {}
    for name, text in sorted(options.items()):
        if not name.startswith(PREFIX):
            continue
        java = name.removeprefix(PREFIX)
        _refuse(name, java.replace("_", "."), text)
        given[java] = text.strip()
    if "bootstrap.servers" not in given:
        raise ConfigurationError("kafka.bootstrap.servers must be set: host:port of one broker or more")
    named = {java.replace(".", "_") for java in given}
    others = {name: value for name, value in defaults.items() if name not in named}
    return config.from_dict(given, prefix=PREFIX, **others)


def _refuse(name: str, java: str, text: str) -> None:
    if java in _REFUSED:
        raise ConfigurationError(f"{name} cannot be set: {_REFUSED[java]}")
    if java in _OBJECTS:
        raise ConfigurationError(
            f"{name} cannot be set: it is a Python object, and Spark passes options as text: {_OBJECTS[java]}"
        )
    if _TEXT_OF_OBJECT.fullmatch(text.strip()):
        raise ConfigurationError(
            f"{name} was given a Python object, of which Spark passes only the text: give a string; "
            "${file:PATH:KEY} and ${env:NAME} are replaced"
        )


def parse_bool(name: str, text: str) -> bool:
    """Parse `true` or `false`, in any case.

    Raises: ConfigurationError: the text is neither.
    """
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ConfigurationError(f"{name} must be true or false, not {text!r}")
    return lowered == "true"


E = TypeVar("E", bound=enum.Enum)

_SOURCE: Final = (
    "subscribe", "assign", "subscribePattern",
    "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy",
    "endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp",
    "failOnDataLoss", "onDataLoss", "trackTopicIds",
    "minPartitions", "maxRecordsPerPartition", "maxBytesPerPartition",
    "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger",
    "includeHeaders", "columns", "key.format", "key.schema", "key.schema.writer", "key.schema.registry",
    "value.format", "value.schema", "value.schema.writer", "value.schema.registry", "mode",
    "columnNameOfCorruptRecord", "deadLetterTopic", "pushdown", "commitGroup",
    "groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs",
)  # fmt: skip
_SINK: Final = ("topic", "includeHeaders", "delivery", "sink.id", "run.id", "ledger")
# Options that Spark adds, or reads itself.
_OF_SPARK: Final = frozenset({"path", "paths", "checkpointlocation", "queryname", "__partition_columns"})

# A task reads few partitions and does nothing else, so that its fetches are large (Kafka's default is 1 MiB).
_SOURCE_DEFAULTS: Final = {
    "client_id": "aiokwire-spark",
    "isolation_level": "read_uncommitted",  # as in spark-sql-kafka
    "max_partition_fetch_bytes": 4 * 1024 * 1024,
}
_SINK_DEFAULTS: Final = {
    "client_id": "aiokwire-spark",
    "allow_auto_create_topics": False,  # a job that writes to a mistyped topic fails
    "transaction_timeout_ms": 900_000,  # bounds a microbatch; the maximum that brokers accept by default
}

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


class OnDataLoss(enum.Enum):
    """The reaction to offsets that should be read and no longer exist."""

    FAIL = "fail"
    SKIP = "skip"
    REPORT = "report"  # continue, and log the missing offsets of each partition


class Delivery(enum.Enum):
    """The sink's guarantee."""

    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


@dataclasses.dataclass(frozen=True)
class Topics:
    """The topics or partitions to read: exactly one of the three fields is set."""

    names: tuple[str, ...] = ()
    partitions: frozenset[TopicPartition] = frozenset()
    pattern: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """The options of a reader."""

    consumer: ConsumerConfig
    topics: Topics
    start: Place
    end: Place
    fall_back_to_latest: bool
    """For a partition without a record at that time or later: its end instead of an error."""
    on_data_loss: OnDataLoss
    track_topic_ids: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_bytes_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay: float
    """Seconds."""
    max_bytes_per_trigger: int | None
    columns: tuple[str, ...]
    decoding: Decoding
    pushdown: bool
    commit_group: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SinkOptions:
    """The options of a writer."""

    producer: ProducerConfig
    topic: str | None
    """For all rows; None: the column topic names it."""
    delivery: Delivery
    sink_id: str | None
    run_id: str | None
    begin_ledger: bool
    """Whether a batch other than the first may start without a ledger of its predecessors."""
    checkpoint_location: str | None


def parse_source(options: Mapping[str, str], *, streaming: bool | None) -> SourceOptions:
    """Parse the options of `spark.read` or `spark.readStream`.

    While `streaming` is None, only the rules that apply to both are checked.

    Raises: ConfigurationError: an option is unknown (the message names the nearest), contradicts
        another, or has an invalid value.
    """
    from aiokwire.consumer import ConsumerConfig  # here, so that a process that only writes does not load it

    given = _Given(options, _SOURCE, "source")
    start, end = _places(given, streaming=bool(streaming))
    if streaming is not None:
        _check_mode(given, start, end, streaming=streaming)
    topics, decoding = _topics(given), _decoding(given)
    _refuse_loop(topics, decoding.dead_letter_topic)
    return SourceOptions(
        consumer=client_options(given.options, ConsumerConfig, _SOURCE_DEFAULTS),
        topics=topics,
        start=start,
        end=end,
        fall_back_to_latest=given.text("startingOffsetsByTimestampStrategy", "error", ("error", "latest")) == "latest",
        on_data_loss=_on_data_loss(given),
        track_topic_ids=given.flag("trackTopicIds", False),
        min_partitions=given.count("minPartitions"),
        max_records_per_partition=given.count("maxRecordsPerPartition"),
        max_bytes_per_partition=given.size("maxBytesPerPartition"),
        max_offsets_per_trigger=given.count("maxOffsetsPerTrigger"),
        min_offsets_per_trigger=_min_offsets(given),
        max_trigger_delay=given.seconds("maxTriggerDelay", "15m"),
        max_bytes_per_trigger=given.size("maxBytesPerTrigger"),
        columns=_columns(given),
        decoding=decoding,
        pushdown=given.flag("pushdown", False),
        commit_group=given.text("commitGroup", None),
    )


def parse_sink(options: Mapping[str, str]) -> SinkOptions:
    """Parse the options of `df.write` or `df.writeStream`.

    Raises: ConfigurationError: as `parse_source`.
    """
    from aiokwire.producer import ProducerConfig  # here, so that a process that only reads does not load it

    given = _Given(options, _SINK, "sink")
    given.flag("includeHeaders", True)  # validated only: the column headers is always written
    return SinkOptions(
        producer=client_options(given.options, ProducerConfig, _SINK_DEFAULTS),
        topic=given.text("topic", None),
        delivery=given.choice("delivery", Delivery, Delivery.AT_LEAST_ONCE),
        sink_id=given.text("sink.id", None),
        run_id=given.text("run.id", None),
        begin_ledger=given.text("ledger", "required", ("required", "begin")) == "begin",
        checkpoint_location=given.options.get("checkpointlocation"),
    )


class _Given:
    """Spark's options by lower-case name; `kafka.` options are left to `client_options`."""

    def __init__(self, options: Mapping[str, str], known: tuple[str, ...], owner: str) -> None:
        self.options = {name.lower(): text for name, text in options.items()}
        lower = {name.lower() for name in known}
        for name in self.options:
            if name not in lower and name not in _OF_SPARK and not name.startswith(PREFIX):
                raise ConfigurationError(_unknown(name, known, owner))

    def has(self, name: str) -> bool:
        return name.lower() in self.options

    def text(self, name: str, default: str | None, choices: tuple[str, ...] = ()) -> Any:
        text = self.options.get(name.lower())
        if text is None:
            return default
        text = text.strip()
        if not text:
            raise ConfigurationError(f"{name} must not be empty")
        if choices and (text := text.lower()) not in choices:
            raise ConfigurationError(f"{name} must be one of {', '.join(choices)}, not {text!r}")
        return text

    def flag(self, name: str, default: bool) -> bool:
        text = self.options.get(name.lower())
        return default if text is None else parse_bool(name, text)

    def count(self, name: str) -> int | None:
        text = self.options.get(name.lower())
        if text is None:
            return None
        if not text.strip().isdecimal() or int(text) < 1:
            raise ConfigurationError(f"{name} must be a positive number, not {text!r}")
        return int(text)

    def size(self, name: str) -> int | None:
        """Return bytes, from a number with or without k, m, g or t."""
        text = self.options.get(name.lower())
        try:
            return None if text is None else parse_size(text)
        except ValueError as error:
            raise ConfigurationError(f"{name} {error}") from None

    def seconds(self, name: str, default: str) -> float:
        """Return seconds; a bare number is milliseconds, as in spark-sql-kafka."""
        try:
            return parse_duration(self.options.get(name.lower(), default), bare_unit="ms")
        except ValueError as error:
            raise ConfigurationError(f"{name} {error}") from None

    def choice(self, name: str, kind: type[E], default: E) -> E:
        values = tuple(str(member.value) for member in kind)
        return kind(self.text(name, str(default.value), values))

    def refuse(self, name: str, reason: str) -> None:
        if self.has(name):
            raise ConfigurationError(f"{name} {reason}")


def _unknown(name: str, known: tuple[str, ...], owner: str) -> str:
    by_lower = {each.lower(): each for each in known}
    nearest = difflib.get_close_matches(name.lower(), [*by_lower, "kafka.bootstrap.servers"], n=1, cutoff=0.6)
    hint = f"; did you mean {by_lower.get(nearest[0], nearest[0])!r}?" if nearest else ""
    return f"the {owner} aiokwire has no option {name!r}{hint}"


# --- the source -----------------------------------------------------------------------------------------------------


def _topics(given: _Given) -> Topics:
    chosen = [name for name in ("subscribe", "assign", "subscribePattern") if given.has(name)]
    if len(chosen) != 1:
        found = f"not {' and '.join(chosen)}" if chosen else "none of them is set"
        raise ConfigurationError(f"one of subscribe, assign and subscribePattern must be set: {found}")
    text = given.text(chosen[0], None)
    if chosen[0] == "assign":
        return Topics(partitions=parse_assign(text))
    if chosen[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise ConfigurationError(f"subscribePattern {text!r} is not a regular expression: {error}") from None
        return Topics(pattern=text)
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ConfigurationError(f"subscribe must name topics, separated by commas, not {text!r}")
    return Topics(names=names)


def _refuse_loop(topics: Topics, dead_letter_topic: str) -> None:
    if not dead_letter_topic:
        return
    names = {*topics.names, *(tp.topic for tp in topics.partitions)}
    if dead_letter_topic in names or (topics.pattern and re.fullmatch(topics.pattern, dead_letter_topic)):
        raise ConfigurationError(
            f"deadLetterTopic cannot be {dead_letter_topic!r}, which is read: its records would be read again"
        )


def _places(given: _Given, *, streaming: bool) -> tuple[Place, Place]:
    default = Place(Kind.LATEST if streaming else Kind.EARLIEST, option="startingOffsets")
    return _place(given, "starting", default), _place(given, "ending", Place(Kind.LATEST, option="endingOffsets"))


def _check_mode(given: _Given, start: Place, end: Place, *, streaming: bool) -> None:
    """Check the rules of streams or of batches.

    Raises: ConfigurationError: an option belongs to the other mode, or nothing would be read.
    """
    if streaming:
        for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
            given.refuse(name, "has no meaning in a stream: use it with spark.read")
        return
    for name in (
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "maxBytesPerTrigger",
        "maxTriggerDelay",
        "commitGroup",
    ):
        given.refuse(name, "belongs to a stream: use it with spark.readStream")
    if start.kind is Kind.LATEST or (start.kind is Kind.OFFSETS and LATEST in start.by_partition.values()):
        raise ConfigurationError("startingOffsets cannot be latest in a batch: nothing would be read")
    if end.kind is Kind.EARLIEST or (end.kind is Kind.OFFSETS and EARLIEST in end.by_partition.values()):
        raise ConfigurationError("endingOffsets cannot be earliest in a batch: nothing would be read")


def _place(given: _Given, side: str, default: Place) -> Place:
    """Return the first that is set, as in spark-sql-kafka: time, times by partition, offsets."""
    name = f"{side}Timestamp"
    if given.has(name):
        text = given.text(name, None)
        if not text.isdecimal():
            raise ConfigurationError(f"{name} must be milliseconds since the epoch, not {text!r}")
        return Place(Kind.TIMESTAMP, timestamp=int(text), option=name)
    name = f"{side}OffsetsByTimestamp"
    if given.has(name):
        times = parse_by_partition(given.text(name, None), name, "timestamp")
        for tp, time in times.items():
            if time < 0:
                raise ConfigurationError(f"{name}: {tp} has {time}, which is before the epoch")
        return Place(Kind.TIMESTAMPS, times, option=name)
    name = f"{side}Offsets"
    if not given.has(name):
        return default
    text = given.text(name, None)
    if text.lower() in ("earliest", "latest"):
        return Place(Kind(text.lower()), option=name)
    offsets = parse_by_partition(text, name)
    for tp, offset in offsets.items():
        if offset < EARLIEST:
            raise ConfigurationError(f"{name}: {tp} has {offset}; -2 is the earliest, -1 the latest")
    return Place(Kind.OFFSETS, offsets, option=name)


def _on_data_loss(given: _Given) -> OnDataLoss:
    if given.has("failOnDataLoss") and given.has("onDataLoss"):
        raise ConfigurationError("failOnDataLoss and onDataLoss configure the same behaviour: set one of them")
    default = OnDataLoss.FAIL if given.flag("failOnDataLoss", True) else OnDataLoss.REPORT
    return given.choice("onDataLoss", OnDataLoss, default)


def _min_offsets(given: _Given) -> int | None:
    least, most = given.count("minOffsetsPerTrigger"), given.count("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise ConfigurationError(f"minOffsetsPerTrigger ({least}) must not be more than maxOffsetsPerTrigger ({most})")
    return least


def _columns(given: _Given) -> tuple[str, ...]:
    headers = given.flag("includeHeaders", False)
    text = given.text("columns", None)
    if text is None:
        return COLUMNS if headers else COLUMNS[:-1]
    by_lower = {name.lower(): name for name in COLUMNS}
    chosen = []
    for name in text.split(","):
        column = by_lower.get(name.strip().lower())
        if column is None:
            raise ConfigurationError(f"columns has {name.strip()!r}: choose from {', '.join(COLUMNS)}")
        if column in chosen:
            raise ConfigurationError(f"columns names {column} twice")
        chosen.append(column)
    if headers and "headers" not in chosen:
        chosen.append("headers")
    return tuple(chosen)


def _decoding(given: _Given) -> Decoding:
    key, value = _side(given, "key"), _side(given, "value")
    plain = key.format is value.format is Format.BINARY
    bad = given.text("columnNameOfCorruptRecord", "")
    if bad and bad.lower() in {name.lower() for name in COLUMNS}:
        raise ConfigurationError(f"columnNameOfCorruptRecord cannot be {bad!r}: a column has that name")
    if bad and plain:
        raise ConfigurationError("columnNameOfCorruptRecord needs key.format or value.format: bytes are never corrupt")
    mode = given.choice("mode", Mode, Mode.PERMISSIVE)
    if bad and mode is not Mode.PERMISSIVE:
        raise ConfigurationError(f"columnNameOfCorruptRecord needs mode=permissive, not {mode.value}")
    dead = given.text("deadLetterTopic", "")
    if dead and plain:
        raise ConfigurationError("deadLetterTopic needs key.format or value.format: bytes are never corrupt")
    if dead and mode is Mode.FAILFAST:
        raise ConfigurationError("deadLetterTopic needs mode=permissive or dropmalformed: failfast stops at the first")
    return Decoding(key, value, mode, bad, dead)


def _side(given: _Given, side: str) -> Side:
    """Return the format of keys or of values."""
    chosen = given.choice(f"{side}.format", Format, Format.BINARY)
    schema = given.text(f"{side}.schema", "")
    needs = chosen in (Format.JSON, Format.AVRO)
    if needs and not schema:
        raise ConfigurationError(f"{side}.format={chosen.value} needs {side}.schema")
    if schema and not needs:
        raise ConfigurationError(f"{side}.schema needs {side}.format=json or avro")
    if chosen is not Format.AVRO:
        for name in ("writer", "registry"):
            given.refuse(f"{side}.schema.{name}", f"needs {side}.format=avro")
    if given.has(f"{side}.schema.registry"):
        given.refuse(f"{side}.schema.writer", f"contradicts {side}.schema.registry, which has the writer's schemas")
    return Side(chosen, schema, given.text(f"{side}.schema.writer", ""), given.text(f"{side}.schema.registry", ""))
