"""Kafka as a source and a sink of Spark, through PySpark's Python data sources. Needs the extra `spark`.

options    what users may say                     datasource  what Spark calls
offsets    Spark's offsets JSON                   schema      columns and their types
planning   which offsets, split into tasks        batch, stream  readers
scan       a task's offsets to Arrow batches      session     one client per process
writer     what Spark calls to write              writing     a task's rows to the brokers
exactly_once  a batch as one transaction          messages    what tasks tell, and whether it is whole
ledger     which batches were committed           owners      one task for each partition
decoding   keys and values as strings, JSON, Avro  dead_letters  those that cannot be decoded

Importing it loads neither Spark nor the client: Spark imports `pyspark_aiokwire` when it looks for data sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiokwire.spark.datasource import AiokwireSource
    from aiokwire.spark.owners import one_owner

__all__ = ["AiokwireSource", "one_owner"]


def __getattr__(name: str) -> Any:
    if name == "AiokwireSource":
        from aiokwire.spark.datasource import AiokwireSource

        return AiokwireSource
    if name == "one_owner":
        from aiokwire.spark.owners import one_owner

        return one_owner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
