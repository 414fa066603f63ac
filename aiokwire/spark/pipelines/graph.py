"""The checks of a pipeline as a whole, and the order of its steps. No I/O.

Used by `pipeline` before anything starts, and by `explain`.
"""

from __future__ import annotations

import difflib
import graphlib
from collections.abc import Iterable, Sequence

from aiokwire.errors import ConfigurationError
from aiokwire.spark.pipelines.declaration import Pipeline, Sink, Source, Step
from aiokwire.spark.pipelines.sql_tables import tables


def check(pipeline: Pipeline) -> None:
    """Check a pipeline.

    Raises: ConfigurationError: an unknown name (the message has the nearest), a cycle, or a
        conflict.
    """
    if not pipeline.sources:
        raise ConfigurationError("the pipeline has no source")
    if not pipeline.sinks:
        raise ConfigurationError("the pipeline has no sink")
    _check_names("source or step", pipeline.tables)
    _check_names("sink", pipeline.sinks)
    ordered(pipeline)
    known = [each.name for each in pipeline.tables]
    for sink in pipeline.sinks:
        if find(sink.from_, known) is None:
            raise ConfigurationError(f"sink {sink.name!r} is from {sink.from_!r}, {unknown(sink.from_, known)}")
        sink.spark_options(pipeline.bootstrap)
    for source in pipeline.sources:
        source.spark_options(pipeline.bootstrap)
    _check_places(pipeline)


def ordered(pipeline: Pipeline) -> list[Step]:
    """Return the steps, each after the steps that it reads.

    Raises: ConfigurationError: a step names an unknown table, or the steps form a cycle.
    """
    steps = {step.name: step for step in pipeline.steps}
    graph = {step.name: [name for name in inputs(step, pipeline) if name in steps] for step in pipeline.steps}
    try:
        return [steps[name] for name in graphlib.TopologicalSorter(graph).static_order()]
    except graphlib.CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        raise ConfigurationError(f"the steps form a cycle: {cycle}") from None


def inputs(step: Step, pipeline: Pipeline) -> list[str]:
    """Return the sources and steps that a step reads.

    Raises: ConfigurationError: it names an unknown table.
    """
    known = [each.name for each in pipeline.tables]
    found = []
    for name in tables(step.sql):
        place = find(name, known)
        if place is None:
            raise ConfigurationError(
                f"step {step.name!r} reads from {name!r}, {unknown(name, known)}; write a table of Spark's catalog "
                "with its database, such as default.airlines"
            )
        found.append(place)
    return list(dict.fromkeys(found))


def upstream(name: str, pipeline: Pipeline) -> list[Source | Step]:
    """Return the sources and steps of a sink, in the pipeline's order."""
    places: dict[str, Source | Step] = {each.name: each for each in pipeline.tables}
    reached: set[str] = set()
    waiting = [find(name, places)]
    while waiting:
        place = waiting.pop()
        if place is None or place in reached:
            continue
        reached.add(place)
        each = places[place]
        if isinstance(each, Step):
            waiting += inputs(each, pipeline)
    return [each for each in places.values() if each.name in reached]


def find(name: str, known: Iterable[str]) -> str | None:
    """Return the name as it was declared: Spark's names are case-insensitive."""
    return next((each for each in known if each.lower() == name.lower()), None)


def unknown(name: str, known: Sequence[str]) -> str:
    """Return the rest of a sentence about an unknown name."""
    nearest = difflib.get_close_matches(name.lower(), [each.lower() for each in known], n=1, cutoff=0.5)
    hint = f"did you mean {find(nearest[0], known)!r}?" if nearest else f"there are {', '.join(known)}"
    return f"which is not a source or step: {hint}"


def _check_names(what: str, values: Sequence[Source | Step | Sink]) -> None:
    seen: set[str] = set()
    for each in values:
        if each.name.lower() in seen:
            raise ConfigurationError(f"the name {each.name!r} is used twice: each {what} needs its own")
        seen.add(each.name.lower())


def _check_places(pipeline: Pipeline) -> None:
    """Check that no sink writes to a topic that is read, and no two sinks to one folder."""
    read = {topic.strip(): source.name for source in pipeline.sources for topic in (source.topic or "").split(",")}
    folders: dict[str, str] = {}
    for sink in pipeline.sinks:
        if sink.topic is not None and sink.topic in read:
            raise ConfigurationError(
                f"sink {sink.name!r} writes to the topic {sink.topic!r}, which source {read[sink.topic]!r} reads: the "
                "pipeline would read its own output"
            )
        if sink.parquet is not None:
            other = folders.setdefault(sink.parquet.rstrip("/"), sink.name)
            if other != sink.name:
                raise ConfigurationError(f"sinks {other!r} and {sink.name!r} write to one folder, {sink.parquet}")
