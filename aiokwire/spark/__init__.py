"""Kafka as a source and a sink of Spark, through PySpark's data sources. Needs the extra `spark`.

options  options, validated, also kafka.*       offsets   Spark's offsets JSON
session   one client per process                   daemon    workers that start quickly
compat    features of the installed PySpark        failures  errors without tracebacks

source/   reads      sink/   writes                decode/   keys and values as columns
archive/ replay/ audit/ sql/                       the verbs of `aiokwire spark`
pipelines/ declared queries, and the front door of all verbs   jobs/ shared by the verbs

Importing it loads neither Spark nor the client: Spark imports `pyspark_aiokwire` whenever it looks
for data sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.spark.sink.partition_owner import one_owner as one_owner
    from aiokwire.spark.source.datasource import AiokwireSource as AiokwireSource
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "spark.sink.partition_owner": "one_owner",
            "spark.source.datasource": "AiokwireSource",
        },
    )
