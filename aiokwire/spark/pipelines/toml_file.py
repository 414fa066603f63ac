"""Pipelines from files: TOML with parameters, or Python that defines `pipeline`.

    ${name}             --set name=..., else the environment
    ${name:otherwise}   the same, with a default
    $${name}            literally ${name}
    ${env:NAME}, ${file:PATH:KEY}, ${dir:PATH:FILE}   left to the client, which reads the secret

Used by `pipeline.run` and the command. `declaration` validates the values.
"""

from __future__ import annotations

import difflib
import os
import pathlib
import re
import runpy
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from aiokwire.errors import ConfigurationError
from aiokwire.parameters import parameters_of
from aiokwire.spark.pipelines.declaration import Pipeline, Sink, Source, Step, Trigger

_PROVIDERS: Final = ("env", "file", "dir", "directory")
_PARAMETER: Final = re.compile(r"\$(\$?)\{([A-Za-z_]\w*)(?::([^}]*))?\}")

_TOP: Final = ("name", "bootstrap", "checkpoint", "trigger", "sources", "steps", "sinks", "spark")
_SOURCE: Final = ("topic", "json", "avro", "string", "watermark", "options")
_STEP: Final = ("sql", "file", "watermark")
_SINK: Final = (
    "from", "topic", "parquet", "console", "delivery", "key", "mode", "tasks", "partition_by", "options",
)  # fmt: skip


def load(path: str | os.PathLike[str], parameters: Mapping[str, str] | None = None) -> Pipeline:
    """Load the pipeline that a file declares; its name is the file's by default.

    Raises: ConfigurationError: the file does not exist, or does not declare a pipeline.
    """
    path = pathlib.Path(path)
    try:
        if path.suffix == ".py":
            pipeline = _from_python(path, dict(parameters or {}))
        elif path.suffix == ".toml":
            pipeline = parse(path.read_text(), parameters or {}, os.environ, folder=path.parent)
        else:
            raise ConfigurationError("a pipeline is declared in a file that ends with .toml or .py")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    return pipeline if pipeline.name else pipeline.set(name=re.sub(r"[^A-Za-z0-9_.-]", "_", path.stem))


# --- TOML -------------------------------------------------------------------------------------------------------------


def parse(
    text: str,
    parameters: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    folder: pathlib.Path | None = None,
) -> Pipeline:
    """Parse a TOML document; `folder` is the base of the file names in it.

    Raises: ConfigurationError: it is not TOML, has an unknown key, or lacks a required one.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"not valid TOML: {error}") from None
    given = Parameters(parameters or {}, environment or {})
    found: dict[str, Any] = given.fill(document, "")
    given.check_all_used()
    _check_keys(found, _TOP, "the file")
    sources = tuple(_source(name, table) for name, table in _tables(found, "sources"))
    steps = tuple(_step(name, table, folder or pathlib.Path()) for name, table in _tables(found, "steps"))
    pipeline = Pipeline(
        name=_name(found.get("name", "")),
        bootstrap=found.get("bootstrap", ""),
        checkpoint=found.get("checkpoint", ""),
        trigger=Trigger.parse(found.get("trigger", "available-now")),
        sources=sources,
        steps=steps,
        spark=found.get("spark", {}),
    )
    sinks = tuple(_sink(name, table, pipeline) for name, table in _tables(found, "sinks"))
    return Pipeline(**{**vars(pipeline), "sinks": sinks})


def _name(given: object) -> str:
    if not isinstance(given, str):
        raise ConfigurationError(f"name must be a string, not {given!r}")
    return given


def _source(name: str, table: dict[str, Any]) -> Source:
    _check_keys(table, _SOURCE, f"source {name!r}")
    return Source(name=name, **table)


def _step(name: str, table: dict[str, Any], folder: pathlib.Path) -> Step:
    owner = f"step {name!r}"
    _check_keys(table, _STEP, owner)
    if ("sql" in table) == ("file" in table):
        raise ConfigurationError(f"{owner} needs sql, or file with the name of a file that has the query")
    sql = table.get("sql")
    if "file" in table:
        if not isinstance(table["file"], str):
            raise ConfigurationError(f"{owner}: file must be a name, not {table['file']!r}")
        try:
            sql = (folder / table["file"]).read_text()
        except OSError as error:
            raise ConfigurationError(f"{owner}: {folder / table['file']}: {error.strerror or error}") from None
    return Step(name=name, sql=sql, watermark=table.get("watermark"))  # type: ignore[arg-type]  # checked there


def _sink(name: str, table: dict[str, Any], pipeline: Pipeline) -> Sink:
    _check_keys(table, _SINK, f"sink {name!r}")
    rest = dict(table)
    given = rest.pop("from") if "from" in rest else pipeline.last
    return Sink(name=name, from_=given, **rest)


def _tables(document: Mapping[str, Any], section: str) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield the tables of a section with their names."""
    found = document.get(section, {})
    what = section[:-1]
    if not isinstance(found, dict):
        raise ConfigurationError(f"{section} must be tables, as [{section}.name], not {found!r}")
    for name, table in found.items():
        if not isinstance(table, dict):
            raise ConfigurationError(f"{what} {name!r} must be a table, [{section}.{name}], not {table!r}")
        yield name, table


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], owner: str) -> None:
    for key in table:
        if key not in known:
            nearest = difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.5)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are {', '.join(known)}"
            raise ConfigurationError(f"{owner} has no key {key!r}; {hint}")


# --- parameters -------------------------------------------------------------------------------------------------------


class Parameters:
    """The values of `${name}` in texts."""

    def __init__(self, given: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._given = given
        self._environment = environment
        self._used: set[str] = set()

    def fill(self, value: Any, where: str) -> Any:
        """Return a value with the parameters in it, and in nested values, replaced.

        Raises: ConfigurationError: a parameter has no value.
        """
        if isinstance(value, dict):
            return {key: self.fill(each, f"{where}.{key}" if where else key) for key, each in value.items()}
        if isinstance(value, list):
            return [self.fill(each, where) for each in value]
        if isinstance(value, str):
            return _PARAMETER.sub(lambda match: self._fill(match, where), value)
        return value

    def _fill(self, match: re.Match[str], where: str) -> str:
        escaped, name, otherwise = match.groups()
        if escaped:
            return match[0][1:]
        if name in _PROVIDERS and otherwise is not None:  # the client replaces it: Spark's plans do not show the secret
            return match[0]
        self._used.add(name)
        for place in (self._given, self._environment):
            if name in place:
                return place[name]
        if otherwise is None:
            raise ConfigurationError(
                f"{where} needs the parameter {name}: give it with --set {name}=..., or in the environment"
            )
        return str(otherwise)

    def check_all_used(self) -> None:
        """Raises: ConfigurationError: a given parameter is not in the file."""
        for name in self._given:
            if name not in self._used:
                raise ConfigurationError(_no_parameter(name, self._used))


def _no_parameter(name: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name, known := sorted(known), n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"it has {', '.join(known) or 'none'}"
    return f"the file has no parameter {name!r}; {hint}"


# --- Python -----------------------------------------------------------------------------------------------------------


def _from_python(path: pathlib.Path, parameters: dict[str, str]) -> Pipeline:
    """Return `pipeline` of a file: a Pipeline, or the result of a function of the parameters."""
    path.stat()  # raises if the file does not exist
    defined = runpy.run_path(str(path))
    if "pipeline" not in defined:
        raise ConfigurationError("the file does not define 'pipeline'")
    pipeline = defined["pipeline"]
    if callable(pipeline):
        pipeline = _call(pipeline, parameters)
    elif parameters:
        raise ConfigurationError(f"{_no_parameter(next(iter(parameters)), [])}: make pipeline a function of parameters")
    if not isinstance(pipeline, Pipeline):
        raise ConfigurationError(f"'pipeline' must be a Pipeline, or a function that returns one, not {pipeline!r}")
    return pipeline


def _call(function: Callable[..., Any], given: Mapping[str, str]) -> Any:
    known = parameters_of(function)
    for name in given:
        if name not in known:
            raise ConfigurationError(_no_parameter(name, known))
    found = dict(given)
    for name, parameter in known.items():
        if name not in found and name in os.environ:
            found[name] = os.environ[name]
        if name not in found and parameter.default is parameter.empty:
            raise ConfigurationError(f"pipeline() needs the parameter {name}: give it with --set {name}=...")
    return function(**found)
