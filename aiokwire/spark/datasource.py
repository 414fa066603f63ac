"""What Spark calls when a query names the format `aiokwire`.

Loads nothing but PySpark before it is used: Spark imports it whenever it looks for data sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

FORMAT = "aiokwire"


class AiokwireSource(DataSource):
    """Kafka topics as tables and streams; options and columns are those of Spark's own Kafka source."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        """The columns, by the options."""
        from aiokwire.spark.options import parse_shape
        from aiokwire.spark.schema import spark_schema

        return spark_schema(*parse_shape(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        from aiokwire.spark.batch import BatchReader
        from aiokwire.spark.options import parse_source
        from aiokwire.spark.schema import check_schema

        options = parse_source(self.options, streaming=False)
        check_schema(schema, options)
        if not options.pushdown:
            return BatchReader(options)
        from aiokwire.spark.pushdown import PushdownReader

        return PushdownReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from aiokwire.spark.options import parse_source
        from aiokwire.spark.schema import check_schema
        from aiokwire.spark.stream import StreamReader

        options = parse_source(self.options, streaming=True)
        check_schema(schema, options)
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from aiokwire.spark.options import parse_sink
        from aiokwire.spark.writer import batch_writer

        return batch_writer(parse_sink(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from aiokwire.spark.options import parse_sink
        from aiokwire.spark.writer import stream_writer

        return stream_writer(parse_sink(self.options), schema)
