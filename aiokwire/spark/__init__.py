"""Kafka as a source and a sink of Spark, through PySpark's Python data sources. Needs the extra `spark`.

options, kafka_options  options, checked           offsets   Spark's offsets JSON
session   one client per process                   daemon    workers that start quickly
compat    what this PySpark lacks                  failures  errors in one sentence

source/   reads      sink/   writes                decode/   keys and values as columns
archive/ replay/ audit/ sql/                       the verbs of `aiokwire spark`
pipelines/ declared queries, and the front door of all verbs   jobs/ what verbs share

Importing it loads neither Spark nor the client: Spark imports `pyspark_aiokwire` when it looks for data sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiokwire.spark.sink.partition_owner import one_owner
    from aiokwire.spark.source.datasource import AiokwireSource

__all__ = ["AiokwireSource", "one_owner"]


def __getattr__(name: str) -> Any:
    if name == "AiokwireSource":
        from aiokwire.spark.source.datasource import AiokwireSource

        return AiokwireSource
    if name == "one_owner":
        from aiokwire.spark.sink.partition_owner import one_owner

        return one_owner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
