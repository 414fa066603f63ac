"""The start of every Spark job: its session, the Python that Spark starts, the driver's requests.

Spark starts its planners for Python data sources on the driver with `PYSPARK_DRIVER_PYTHON`, else
`PYSPARK_PYTHON`, and the tasks of the source on the executors with the same path.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from aiokwire.errors import ConfigurationError, KafkaError
from aiokwire.group import GroupOffsets
from aiokwire.spark.jobs.cluster import is_local
from aiokwire.spark.session import session_for
from aiokwire.spark.sink import writing
from aiokwire.threads import start_thread
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aiokwire.cluster import Client, ClientConfig

T = TypeVar("T")

logger: logging.Logger = logging.getLogger("aiokwire.spark")

PYTHON: Final = "PYSPARK_PYTHON"
DRIVER_PYTHON: Final = "PYSPARK_DRIVER_PYTHON"
_CONF_PYTHON: Final = "spark.pyspark.python"

_CONF: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
}
# On a single machine: listen on the loopback interface only, and start workers quickly.
_LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "aiokwire.spark.daemon",
}


def spark_session(
    name: str,
    *,
    given: SparkSession | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the given or active session, or start one, on this machine or on `master`.

    Raises: ConfigurationError: the session is of Spark Connect, or Spark does not start.
    """
    from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    active = given or SparkSession.getActiveSession()
    if active is not None:
        return check_session(active, name)
    place = master or os.environ.get("MASTER") or "local[*]"
    os.environ[PYTHON] = choose_python(os.environ, conf or {}, sys.executable)
    warn_of_driver_python(os.environ, place)
    own_python = {os.environ[PYTHON], os.environ.get(DRIVER_PYTHON, sys.executable)} == {sys.executable}
    local = is_local(place)
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder: Any = SparkSession.builder
    builder = builder.appName(name).master(place)
    settings = _CONF | (_LOCAL if local else {}) | dict(conf or {})
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        with home_without_zip() if local and own_python else contextlib.nullcontext():
            spark: SparkSession = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise ConfigurationError(f"Spark does not start: {error}; it needs Java 17 or newer (JAVA_HOME)") from error
    except Py4JError as error:  # for instance if the master removed the application because no executor started
        text = next(iter(str(error.java_exception if isinstance(error, Py4JJavaError) else error).splitlines()), "")
        raise ConfigurationError(f"Spark does not start on {place}: {text}; see Spark's log") from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def check_session(spark: SparkSession, name: str) -> SparkSession:
    """Return the session if pipelines can run on it.

    Raises: ConfigurationError: it is of Spark Connect, or its Python is a notebook server.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise ConfigurationError(
            f"{name} does not run on Spark Connect, whose clients cannot access Spark's JVM: use a session of "
            "SparkSession.builder.master(...) instead of remote(...), or the commands of `aiokwire spark`; the format "
            "aiokwire itself (read, readStream, write, writeStream) works on Spark Connect"
        )
    check_driver_python(os.environ)
    return spark


def choose_python(environment: Mapping[str, str], conf: Mapping[str, str], own: str) -> str:
    """Return the path for `PYSPARK_PYTHON`: from the settings, the environment, or `own`.

    Raises: ConfigurationError: it cannot be run on this driver, or is a notebook server.
    """
    check_driver_python(environment)
    name = _CONF_PYTHON if conf.get(_CONF_PYTHON) else PYTHON
    python = conf.get(_CONF_PYTHON) or environment.get(PYTHON) or own
    if shutil.which(python, path=environment.get("PATH")) is None:
        raise ConfigurationError(
            f"{name}={python} cannot be run in {os.getcwd()}: Spark starts Python by this path on the driver, too; "
            "unpack the environment there, or start the driver from the folder that has it"
        )
    return python


def check_driver_python(environment: Mapping[str, str]) -> None:
    """Refuse a notebook server as the Python of Spark's planners, which would not find aiokwire.

    Raises: ConfigurationError.
    """
    driver = environment.get(DRIVER_PYTHON, "")
    if pathlib.Path(driver).name.startswith("jupyter"):
        raise ConfigurationError(
            f"{DRIVER_PYTHON}={driver}: Spark starts Python data sources with it, and fails with "
            f"DATA_SOURCE_NOT_FOUND for aiokwire; unset it, set {PYTHON}, start the notebook server by its own "
            "command, and create the session in the notebook"
        )


def warn_of_driver_python(environment: Mapping[str, str], master: str) -> None:
    """Log that executors on other machines use the path of the driver's Python."""
    driver = environment.get(DRIVER_PYTHON)
    if driver and driver != environment.get(PYTHON) and not master.startswith("local"):
        logger.warning(
            "%s=%s: executors run the tasks of Python data sources by this path instead of %s; unset it unless they "
            "have it",
            DRIVER_PYTHON,
            driver,
            PYTHON,
        )


@contextlib.contextmanager
def home_without_zip() -> Iterator[None]:
    """Start Spark in the block from a home without `pyspark.zip`, unless `SPARK_HOME` is set.

    Spark puts that archive first in the path of its Python processes; it has no bytecode, so that
    each process would spend most of a second to compile PySpark.
    """
    import pyspark

    installed = pathlib.Path(pyspark.__file__).parent
    if "SPARK_HOME" in os.environ or not (installed / "jars").is_dir():
        yield
        return
    home = pathlib.Path(tempfile.mkdtemp(prefix="aiokwire-spark-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)  # Spark reads it while it runs
    for each in installed.iterdir():
        if each.name != "python":
            (home / each.name).symlink_to(each)
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def ask(config: ClientConfig, question: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
    """Run a request of the driver; also works where a loop is running, as in a notebook.

    Raises: KafkaError: from the request, or because no broker could be reached.
    """

    def answer() -> T:
        session = session_for(config)
        return session.wait(question(session.client))

    return _away_from_loops(answer)


def on_loop(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on a new loop; also works where a loop is running."""
    return _away_from_loops(lambda: writing.run(main))


def _away_from_loops(work: Callable[[], T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    return start_thread(work, name="aiokwire-ask").result()


def commit_ends(config: ClientConfig, group: str, ends: Mapping[TopicPartition, int]) -> None:
    """Commit the offsets of a job for tools that show lag; a failure is only logged."""
    offsets = {tp: OffsetAndMetadata(offset) for tp, offset in ends.items()}

    async def commit(client: Client) -> None:
        await GroupOffsets(client, group).commit(offsets, GroupMetadata(group), timeout=config.request_timeout)

    try:
        ask(config, commit)
    except KafkaError as error:
        logger.warning("cannot commit the job's offsets to group %r, whose lag is stale: %s", group, error)
