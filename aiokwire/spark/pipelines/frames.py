"""Sources, steps and sinks as Spark's frames: built and analysed by Spark before any query starts.

Used by `pipeline`. `as_table` and `as_records` convert records to SQL rows and back.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, StringType, StructType, TimestampType

from aiokwire.errors import ConfigurationError
from aiokwire.spark.pipelines.declaration import Pipeline, Sink, Source, Step
from aiokwire.spark.pipelines.graph import find, ordered
from aiokwire.spark.sink.columns import sink_columns
from aiokwire.spark.sql.plans import quiet_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Columns of a frame that are parts of a record, and are left out of a value built from the others.
PARTS: Final = ("key", "topic", "partition", "headers", "timestamp")


@contextlib.contextmanager
def tables(spark: SparkSession, pipeline: Pipeline) -> Iterator[dict[str, DataFrame]]:
    """Yield sources and steps by name, which are SQL views in the block.

    Raises: ConfigurationError: a step, a schema or a watermark is invalid.
    """
    made: dict[str, DataFrame] = {}
    try:
        for source in pipeline.sources:
            _add(spark, made, source, _source(spark, source, pipeline.bootstrap))
        for step in ordered(pipeline):
            with analysed(f"step {step.name!r}"):
                frame = spark.sql(step.sql)
            if not frame.isStreaming:
                raise ConfigurationError(f"step {step.name!r} reads no source, so it is not a stream")
            _add(spark, made, step, frame)
        yield made
    finally:
        for name in made:
            spark.catalog.dropTempView(name)


def _source(spark: SparkSession, source: Source, bootstrap: str) -> DataFrame:
    with analysed(f"source {source.name!r}"):
        reader = spark.readStream.format("aiokwire").options(**source.spark_options(bootstrap))
        return as_table(reader.load())


def _add(spark: SparkSession, made: dict[str, DataFrame], value: Source | Step, frame: DataFrame) -> None:
    """Set a frame's watermark, and register its name."""
    owner = f"{type(value).__name__.lower()} {value.name!r}"
    if value.watermark is not None:
        column = timestamp_column(frame.schema, value.watermark.column, owner)
        with analysed(owner):
            frame = frame.withWatermark(column, value.watermark.delay)
    if spark.catalog.tableExists(value.name):
        raise ConfigurationError(f"{owner}: the Spark session has a table of that name already")
    with analysed(owner):
        frame.createTempView(value.name)
    made[value.name] = frame


def timestamp_column(schema: StructType, name: str, owner: str) -> str:
    """Return a watermark's column, as the schema spells it.

    Raises: ConfigurationError: it does not exist, or is not a timestamp.
    """
    found = find(name, schema.names)
    if found is None:
        times = [field.name for field in schema.fields if isinstance(field.dataType, TimestampType)]
        nearest = difflib.get_close_matches(name.lower(), [each.lower() for each in schema.names], n=1, cutoff=0.5)
        hint = f"did you mean {find(nearest[0], schema.names)!r}?" if nearest else f"timestamps are {', '.join(times)}"
        raise ConfigurationError(f"{owner}: the watermark's column {name!r} does not exist; {hint}")
    kind = schema[found].dataType
    is_window = isinstance(kind, StructType) and kind.names == ["start", "end"]
    if not isinstance(kind, TimestampType) and not is_window:
        raise ConfigurationError(
            f"{owner}: a watermark needs a timestamp, but {found!r} is {kind.simpleString()}: convert it in a step "
            "with to_timestamp or timestamp_millis, and put the watermark on that step"
        )
    return found


# --- records and tables -----------------------------------------------------------------------------------------------


def as_table(frame: DataFrame) -> DataFrame:
    """Return the fields of decoded values as columns, then the columns of the record.

    A column of the record with the name of a field is prefixed by `record_`.
    """
    value = frame.schema["value"].dataType if "value" in frame.schema.names else None
    if not isinstance(value, StructType):
        return frame
    fields = [each.lower() for each in value.names]
    decoded = [f.col("value").getField(name).alias(name) for name in value.names]
    others = [
        f.col(f"`{name}`").alias(f"record_{name}" if name.lower() in fields else name)
        for name in frame.schema.names
        if name != "value"
    ]
    return frame.select(*decoded, *others)


def as_records(frame: DataFrame, sink: Sink) -> DataFrame:
    """Return the rows as records for a topic.

    The column `value` is written as it is, or as JSON if it is composite; without it, all columns
    that are not parts of a record are written as a JSON object.

    Raises: ConfigurationError: it has no column to write, or one of the wrong type.
    """
    owner = f"sink {sink.name!r}"
    schema = frame.schema
    parts = {find(name, schema.names) for name in PARTS}
    value = find("value", schema.names)
    columns = [f.col(f"`{name}`") for name in schema.names if name in parts]
    with analysed(owner):
        if sink.key is not None:
            columns = [f.col(f"`{name}`") for name in schema.names if name in parts and name.lower() != "key"]
            columns.append(_as_text(frame.select(f.expr(sink.key).alias("key")), f.expr(sink.key)).alias("key"))
        if value is not None:
            columns.append(_as_text(frame.select(f.col(f"`{value}`")), f.col(f"`{value}`")).alias("value"))
        else:
            rest = [f.col(f"`{name}`") for name in schema.names if name not in parts]
            if not rest:
                raise ConfigurationError(
                    f"{owner}: every column is another part of a record: add a column for the value"
                )
            columns.append(f.to_json(f.struct(*rest), {"ignoreNullFields": "false"}).alias("value"))
        records = frame.select(*columns)
    try:
        sink_columns(records.schema, sink.topic)
    except ConfigurationError as error:
        raise ConfigurationError(f"{owner}: {error}") from None
    return records


def _as_text(one: DataFrame, column: Any) -> Any:
    """Return bytes and strings unchanged, composite values as JSON, others as Spark's text."""
    kind = one.schema.fields[0].dataType
    if isinstance(kind, (BinaryType, StringType)):
        return column
    if kind.typeName() in ("struct", "array", "map"):
        return f.to_json(column, {"ignoreNullFields": "false"})
    return column.cast("string")


# --- Spark's analysis -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def analysed(owner: str) -> Iterator[None]:
    """Convert errors of Spark's analysis in the block.

    Raises: ConfigurationError: Spark refused; the message names the owner.
    """
    try:
        with quiet_errors():
            yield
    except PySparkException as error:
        raise ConfigurationError(f"{owner}: {verdict(str(error))}") from error


def verdict(message: str) -> str:
    """Return the sentence of an analysis error, without its class, the plan, and the SQL state."""
    from aiokwire.spark.jobs.stopping import reason

    is_python = "Traceback" in message or ": aiokwire." in message
    text = reason(message) if is_python else next(iter(message.strip().splitlines()), "Spark gives no reason")
    if text.startswith("[") and "]" in text:
        text = text[text.index("]") + 1 :].strip()
    head, _, rest = text.partition(" SQLSTATE: ")
    place = rest.partition(";")[2].strip(" ;")
    return f"{head} ({place})" if place else head


def check_mode(frame: DataFrame, sink: Sink) -> None:
    """Check a sink's mode before any query starts; Spark checks it when the query starts.

    Raises: ConfigurationError: for instance an aggregation without a watermark in append mode.
    """
    jvm: Any = frame.sparkSession.sparkContext._jvm
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, sink.mode.capitalize())()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    plan: Any = frame._jdf
    with analysed(f"sink {sink.name!r}"):
        checker.checkForStreaming(plan.queryExecution().analyzed(), mode)


def schema_text(schema: StructType) -> str:
    """Format columns: `carrier string, flights bigint`."""
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)
