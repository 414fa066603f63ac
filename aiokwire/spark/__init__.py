"""Kafka as a source and a sink of Spark, through PySpark's data sources. Needs the extra `spark`.

options, kafka_options  options, validated         offsets   Spark's offsets JSON
session   one client per process                   daemon    workers that start quickly
compat    features of the installed PySpark        failures  errors without tracebacks

source/   reads      sink/   writes                decode/   keys and values as columns
archive/ replay/ audit/ sql/                       the verbs of `aiokwire spark`
pipelines/ declared queries, and the front door of all verbs   jobs/ shared by the verbs

Importing it loads neither Spark nor the client: Spark imports `pyspark_aiokwire` whenever it looks
for data sources.
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
