"""What Spark knows of a query: the tables that its text names, and the columns that its plan needs of each topic.

Both are asked of Spark's own parser and optimizer, through the gateway to the JVM: neither regular expressions nor a
second grammar decide what a query means. Spark does not tell Python data sources which columns a query needs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aiokwire.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CATALYST: Final = "org.apache.spark.sql.catalyst.plans.logical"
# What does something, in place of asking: neither is a query.
_ACTIONS: Final = (f"{_CATALYST}.Command", f"{_CATALYST}.ParsedStatement")


class Names(NamedTuple):
    """What a query's text refers to."""

    tables: frozenset[tuple[str, ...]]
    """Names of tables, in their parts."""
    local: frozenset[str]
    """What the query itself names by `with`, in lower case."""


def names_in(spark: SparkSession, query: str) -> Names:
    """The tables that a query names.

    Raises: ConfigurationError: it cannot be parsed, or is no query.
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
    """By topic: the columns of the source that the optimized plan has a use for."""
    inner: Any = frame
    found: dict[str, set[str]] = {}
    _visit(inner._jdf.queryExecution().optimizedPlan(), None, found)
    return found


def physical_plan(frame: DataFrame) -> str:
    """How Spark runs a query, for people; what its sources were told of filters stands there, too."""
    inner: Any = frame
    utils: Any = frame.sparkSession.sparkContext._jvm
    return str(utils.PythonSQLUtils.explainString(inner._jdf.queryExecution(), "formatted")).rstrip()


@contextlib.contextmanager
def quiet_errors() -> Iterator[None]:
    """Within the block PySpark does not log what is wrong with a query: it raises it, too, and that is told."""
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")  # of its own class, whoever asks for it first
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _visit(node: Any, wanted: set[int] | None, found: dict[str, set[str]]) -> None:
    """`wanted`: which attributes of the node are used above it; None: any may be."""
    kind = _kind(node)
    if kind.startswith("DataSourceV2"):
        _note(node, wanted, found)
        return
    if kind in ("Project", "Aggregate"):
        below: set[int] | None = _ids(node.references().toSeq())
    elif kind == "Filter" and wanted is not None:
        below = wanted | _ids(node.references().toSeq())
    else:
        below = None  # the optimizer has put a Project below it where there was something to leave out
    for child in _items(node.children()):
        _visit(child, below, found)
    for plan in _items(node.subqueries()):
        _visit(plan, None, found)


def _note(node: Any, wanted: set[int] | None, found: dict[str, set[str]]) -> None:
    relation = node.relation() if _kind(node) == "DataSourceV2ScanRelation" else node
    topic = relation.options().get("subscribe")
    if topic is None:
        return  # some other source's
    for attribute in _items(node.output()):
        if wanted is None or attribute.exprId().id() in wanted:
            found.setdefault(topic, set()).add(attribute.name())
    found.setdefault(topic, set())


def _walk(plan: Any) -> Iterator[Any]:
    """A plan with all that is in it, also in its expressions."""
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
    """What Spark says, without where in its own plans that is."""
    text = str(error).split("SQLSTATE", maxsplit=1)[0].split("\n\n", maxsplit=1)[0]
    return " ".join(text.split()).rstrip(" .;:")
