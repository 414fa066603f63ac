"""The data source that Spark instantiates for the format `aiokwire`.

Imports only PySpark until it is used: Spark imports it whenever it looks for data sources.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from aiokwire.errors import KafkaError
from aiokwire.spark.failures import one_sentence

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

    from aiokwire.spark.options import SourceOptions

FORMAT = "aiokwire"


class AiokwireSource(DataSource):
    """Kafka topics as tables and streams, with the options and columns of spark-sql-kafka."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        """Return the columns as DDL. Called by `load()`: it checks nearly all options.

        Raises: ConfigurationError: an option is invalid, in batches and in streams.
        """
        from aiokwire.spark.decode.registry import with_schemas
        from aiokwire.spark.options import parse_source
        from aiokwire.spark.source.schema import ddl

        with one_sentence():
            options = parse_source(self.options, streaming=None)
            return ddl(options.columns, with_schemas(options.decoding))

    def reader(self, schema: StructType) -> DataSourceReader:
        with one_sentence():
            return self._reader(schema)

    def _reader(self, schema: StructType) -> DataSourceReader:
        from aiokwire.spark.source.batch import BatchReader

        options = self._source_options(schema, streaming=False)
        if not options.pushdown:
            return BatchReader(options, schema)
        from aiokwire.spark import compat

        compat.require(compat.HAS_FILTERS, "pushdown needs", "4.1")
        from aiokwire.spark.source.pushdown import PushdownReader

        return PushdownReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from aiokwire.spark import compat

        compat.require(compat.HAS_STREAM_READS, "reading streams with limited microbatches needs", "4.2")
        from aiokwire.spark.source.stream import RefusedReader, StreamReader

        try:
            return StreamReader(self._source_options(schema, streaming=True), schema)
        except KafkaError as error:
            # Raised here, it would be hidden by an UnboundLocalError: Spark stops a reader that it has not created.
            return RefusedReader(error)

    def _source_options(self, schema: StructType, *, streaming: bool) -> SourceOptions:
        """Validate the source's options on the driver, and load the schemas that they name."""
        from aiokwire.spark.decode.decoding import check_decoding
        from aiokwire.spark.decode.registry import with_schemas
        from aiokwire.spark.options import parse_source
        from aiokwire.spark.source.schema import check_schema

        options = parse_source(self.options, streaming=streaming)
        options = dataclasses.replace(options, decoding=with_schemas(options.decoding))
        check_schema(schema, options)
        check_decoding(schema, options.decoding)
        return options

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from aiokwire.spark.options import parse_sink
        from aiokwire.spark.sink.writer import batch_writer

        with one_sentence():
            return batch_writer(parse_sink(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from aiokwire.spark import compat
        from aiokwire.spark.options import parse_sink

        with one_sentence():
            compat.require(compat.HAS_STREAM_WRITES, "writing streams needs", "4.1")
            from aiokwire.spark.sink.writer import stream_writer

            return stream_writer(parse_sink(self.options), schema)
