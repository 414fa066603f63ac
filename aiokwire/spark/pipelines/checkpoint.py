"""The owner of a checkpoint, so that no pipeline resumes from another one's offsets.

    <checkpoint>/pipeline.json        name of the pipeline, and the permanent id of the checkpoint
    <checkpoint>/sink-<name>.json     the sources and steps of the sink when its query began
    <checkpoint>/<name>/              Spark's checkpoint of the sink's query

The id is part of the transactional ids of exactly-once sinks: a new checkpoint has a new ledger, a
moved one keeps its own. Files are written once. `Folder` is in any file system that Spark can
write.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from aiokwire.errors import ConfigurationError
from aiokwire.spark.pipelines.declaration import Pipeline, Sink, Source, Step
from aiokwire.spark.pipelines.graph import upstream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Document = dict[str, Any]

_OWNER: Final = "pipeline.json"


class Folder:
    """A folder in any file system that Spark supports for checkpoints."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        context: Any = spark.sparkContext
        self.path = path
        self._path_of: Any = context._jvm.org.apache.hadoop.fs.Path
        root = self._path_of(path)
        self._files = root.getFileSystem(context._jsc.hadoopConfiguration())
        self._root = self._files.makeQualified(root)

    def exists(self, name: str) -> bool:
        return bool(self._files.exists(self._path_of(self._root, name)))

    def read(self, name: str) -> Document | None:
        """Read a JSON document; None if it does not exist.

        Raises: ConfigurationError: it is not JSON.
        """
        if not self.exists(name):
            return None
        stream = self._files.open(self._path_of(self._root, name))
        try:
            document: Document = json.loads(bytes(stream.readAllBytes()))
            return document
        except ValueError as error:
            raise ConfigurationError(f"{self.path}/{name} is corrupt: {error}") from None
        finally:
            stream.close()

    def create(self, name: str, document: Document) -> None:
        """Create a document atomically."""
        draft = self._path_of(self._root, f".{name}.draft")
        stream = self._files.create(draft, True)
        try:
            stream.write(json.dumps(document, indent=1, sort_keys=True).encode())
        finally:
            stream.close()
        self._files.rename(draft, self._path_of(self._root, name))


def claim(
    folder: Folder, pipeline: Pipeline, clusters: Mapping[str, str | None], fresh_id: str
) -> tuple[str, list[str]]:
    """Check that the checkpoint belongs to this pipeline, or claim a new one.

    `clusters` has the cluster id of each source. Returns the checkpoint's id, and notes for the
    user.

    Raises: ConfigurationError: it belongs to another pipeline, or has offsets of other topics.
    """
    document = folder.read(_OWNER)
    is_spark = folder.exists("metadata") or any(folder.exists(f"{sink.name}/metadata") for sink in pipeline.sinks)
    checkpoint_id = owner_id(document, pipeline.name, folder.path, is_spark=is_spark)
    if checkpoint_id is None:
        checkpoint_id = fresh_id
        folder.create(_OWNER, {"pipeline": pipeline.name, "id": fresh_id})
    notes = []
    for sink in pipeline.sinks:
        now = made_of(sink, pipeline, clusters)
        before = folder.read(f"sink-{sink.name}.json")
        if before is None:
            folder.create(f"sink-{sink.name}.json", now)
        else:
            notes += changes(sink.name, before, now, folder.path)
    return checkpoint_id, notes


def owner_id(document: Document | None, name: str, path: str, *, is_spark: bool) -> str | None:
    """Return the id of this pipeline's checkpoint; None if it is new. `is_spark`: it has a query.

    Raises: ConfigurationError: it belongs to another pipeline or query.
    """
    if document is None:
        if is_spark:
            raise ConfigurationError(
                f"{path} has the checkpoint of a query outside of pipelines: choose another folder for the checkpoint"
            )
        return None
    if document.get("pipeline") != name:
        raise ConfigurationError(
            f"the checkpoint {path} belongs to the pipeline {document.get('pipeline')!r}, not to {name!r}: choose "
            "another folder, or give the pipeline that name"
        )
    return str(document.get("id", ""))


def made_of(sink: Sink, pipeline: Pipeline, clusters: Mapping[str, str | None]) -> Document:
    """Return what a sink's offsets and state depend on: topics, their clusters, and steps."""
    reads: dict[str, Any] = {}
    steps: dict[str, str] = {}
    for each in upstream(sink.from_, pipeline):
        if isinstance(each, Source):
            chosen = {name.lower(): text for name, text in each.options.items()}
            topic = each.topic or chosen.get("subscribe") or chosen.get("assign") or chosen.get("subscribepattern")
            reads[each.name] = {"topic": topic, "cluster": clusters.get(each.name)}
        else:
            steps[each.name] = _digest(each)
    return {"reads": reads, "steps": steps}


def changes(sink: str, before: Document, now: Document, path: str) -> list[str]:
    """Return notes about changed steps.

    Raises: ConfigurationError: the sources have changed.
    """
    for name in sorted({*before["reads"], *now["reads"]}):
        was, is_now = before["reads"].get(name), now["reads"].get(name)
        if was is None or is_now is None:
            verb = "did not read" if was is None else "also read"
            raise ConfigurationError(
                f"the checkpoint {path} is of sink {sink!r} when it {verb} source {name!r}: its offsets do not match; "
                "choose another folder, or another name for the sink"
            )
        for what in ("topic", "cluster"):
            if was[what] != is_now[what] and None not in (was[what], is_now[what]):
                raise ConfigurationError(
                    f"the checkpoint {path} has offsets of sink {sink!r} for {what} {was[what]!r}, and source {name!r} "
                    f"reads {what} {is_now[what]!r}: choose another folder, or another name for the sink"
                )
    changed = sorted(
        name for name in {*before["steps"], *now["steps"]} if before["steps"].get(name) != now["steps"].get(name)
    )
    if not changed:
        return []
    return [
        f"sink {sink}: the steps {', '.join(changed)} have changed since its checkpoint was created; Spark resumes if "
        "the state is compatible, and fails if it is not"
    ]


def _digest(step: Step) -> str:
    watermark = "" if step.watermark is None else f"{step.watermark.column} {step.watermark.delay}"
    return hashlib.sha256(" ".join([*step.sql.split(), watermark]).encode()).hexdigest()[:16]
