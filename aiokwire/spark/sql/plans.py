"""The tables that a query names, and the columns that its plan needs of each topic.

Both come from Spark's own parser and optimizer, through the gateway to the JVM, not from regular
expressions or a second grammar. Spark does not pass the needed columns to Python data sources.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aiokwire.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CATALYST: Final = "org.apache.spark.sql.catalyst.plans.logical"
# Statements with an effect, which are not queries.
_ACTIONS: Final = (f"{_CATALYST}.Command", f"{_CATALYST}.ParsedStatement")


class Names(NamedTuple):
    """The names in a query."""

    tables: frozenset[tuple[str, ...]]
    """Names of tables, split into parts."""
    local: frozenset[str]
    """Names that the query defines by `with`, in lower case."""


def names_in(spark: SparkSession, query: str) -> Names:
    """Return the tables that a query names.

    Raises: ConfigurationError: it cannot be parsed, or is another statement.
    """
    from pyspark.errors import PySparkException

    session: Any = spark
    try:
        with quiet_errors():
            plan = session._jsparkSession.sessionState().sqlParser().parsePlan(query)
    except PySparkException as error:
        raise ConfigurationError(f"the query cannot be parsed: {first_lines(error)}") from None
    tables: set[tuple[str, ...]] = set()
    local: set[str] = set()
    for node in _walk(plan):
        kind = _kind(node)
        if _is_action(spark, node):
            raise ConfigurationError(
                f"only queries can be run here, not {kind}: select ..., with ... select ..., values ..."
            )
        if kind == "UnresolvedRelation":
            tables.add(tuple(_items(node.multipartIdentifier())))
        elif kind == "UnresolvedWith":
            local.update(each._1().lower() for each in _items(node.cteRelations()))
    return Names(frozenset(tables), frozenset(local))


def needed_columns(frame: DataFrame) -> dict[str, set[str]]:
    """Return, by topic, the columns of the source that the optimized plan uses."""
    inner: Any = frame
    found: dict[str, set[str]] = {}
    _visit(inner._jdf.queryExecution().optimizedPlan(), None, found)
    return found


def physical_plan(frame: DataFrame) -> str:
    """Return Spark's formatted plan of a query, with the filters pushed to its sources."""
    inner: Any = frame
    utils: Any = frame.sparkSession.sparkContext._jvm
    return str(utils.PythonSQLUtils.explainString(inner._jdf.queryExecution(), "formatted")).rstrip()


@contextlib.contextmanager
def quiet_errors() -> Iterator[None]:
    """Suppress PySpark's log of a query's errors in the block: it raises them, too."""
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")  # logging.getLogger would create one of another class
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _visit(node: Any, wanted: set[int] | None, found: dict[str, set[str]]) -> None:
    """Collect columns below a node; `wanted`: its attributes that are used above it, None: any."""
    kind = _kind(node)
    if kind.startswith("DataSourceV2"):
        _note(node, wanted, found)
        return
    if kind in ("Project", "Aggregate"):
        below: set[int] | None = _ids(node.references().toSeq())
    elif kind == "Filter" and wanted is not None:
        below = wanted | _ids(node.references().toSeq())
    else:
        below = None  # the optimizer puts a Project below it if attributes can be left out
    for child in _items(node.children()):
        _visit(child, below, found)
    for plan in _items(node.subqueries()):
        _visit(plan, None, found)


def _note(node: Any, wanted: set[int] | None, found: dict[str, set[str]]) -> None:
    relation = node.relation() if _kind(node) == "DataSourceV2ScanRelation" else node
    topic = relation.options().get("subscribe")
    if topic is None:
        return  # another source
    for attribute in _items(node.output()):
        if wanted is None or attribute.exprId().id() in wanted:
            found.setdefault(topic, set()).add(attribute.name())
    found.setdefault(topic, set())


def _walk(plan: Any) -> Iterator[Any]:
    """Yield a plan and all plans below it, including those in expressions."""
    yield plan
    for below in (plan.children(), plan.innerChildren(), plan.subqueries()):
        for each in _items(below):
            yield from _walk(each)


def _items(sequence: Any) -> Iterable[Any]:
    return [sequence.apply(at) for at in range(sequence.size())]


def _ids(attributes: Any) -> set[int]:
    return {each.exprId().id() for each in _items(attributes)}


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _is_action(spark: SparkSession, node: Any) -> bool:
    from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]  # PySpark's own way to the JVM

    gateway: Any = spark.sparkContext._gateway
    return any(is_instance_of(gateway, node, name) for name in _ACTIONS)


def first_lines(error: Exception) -> str:
    """Return the message of Spark's error without its context in the plan."""
    text = str(error).split("SQLSTATE", maxsplit=1)[0].split("\n\n", maxsplit=1)[0]
    return " ".join(text.split()).rstrip(" .;:")
