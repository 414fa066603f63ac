"""Which Python Spark starts, on the driver and on executors, and what is wrong about it.

Spark starts its planners for Python data sources on the driver with `PYSPARK_DRIVER_PYTHON`, else `PYSPARK_PYTHON`,
and the tasks of the source on the executors with the same path. Used by `spark_session`.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from aiokwire.errors import ConfigurationError

logger = logging.getLogger("aiokwire.spark")

PYTHON: Final = "PYSPARK_PYTHON"
DRIVER_PYTHON: Final = "PYSPARK_DRIVER_PYTHON"
_CONF_PYTHON: Final = "spark.pyspark.python"


def choose_python(environment: Mapping[str, str], conf: Mapping[str, str], own: str) -> str:
    """The path for `PYSPARK_PYTHON`: what the settings name, else the environment, else the driver's `own`.

    Raises: ConfigurationError: Spark could not start it, or something else than Python, on this driver.
    """
    check_driver_python(environment)
    name = _CONF_PYTHON if conf.get(_CONF_PYTHON) else PYTHON
    python = conf.get(_CONF_PYTHON) or environment.get(PYTHON) or own
    if shutil.which(python, path=environment.get("PATH")) is None:
        raise ConfigurationError(
            f"{name}={python} cannot be run in {os.getcwd()}: Spark starts Python by this path on the driver, too; "
            "leave the unpacked environment there, or start the driver from the folder that has it"
        )
    return python


def check_driver_python(environment: Mapping[str, str]) -> None:
    """Refuse a notebook server as the Python of Spark's planners, which would not find the format aiokwire.

    Raises: ConfigurationError.
    """
    driver = environment.get(DRIVER_PYTHON, "")
    if Path(driver).name.startswith("jupyter"):
        raise ConfigurationError(
            f"{DRIVER_PYTHON}={driver}: Spark starts Python data sources with it, and answers DATA_SOURCE_NOT_FOUND "
            f"for aiokwire; unset it, set {PYTHON}, start the notebook server by its own command, and make the "
            "session in the notebook"
        )


def warn_of_driver_python(environment: Mapping[str, str], master: str) -> None:
    """Log that executors on other machines get the path of the driver's Python."""
    driver = environment.get(DRIVER_PYTHON)
    if driver and driver != environment.get(PYTHON) and not master.startswith("local"):
        logger.warning(
            "%s=%s: executors run the tasks of Python data sources by this path instead of %s; unset it unless they "
            "have it",
            DRIVER_PYTHON,
            driver,
            PYTHON,
        )
