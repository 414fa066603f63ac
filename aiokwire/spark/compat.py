"""Features of the installed PySpark: batches work with 4.0, other features need 4.1 or 4.2."""

from __future__ import annotations

import importlib.util
from typing import Final

import pyspark
from pyspark.sql import datasource

from aiokwire.errors import ConfigurationError

HAS_STREAM_READS: Final = importlib.util.find_spec("pyspark.sql.streaming.datasource") is not None  # 4.2
HAS_STREAM_WRITES: Final = hasattr(datasource, "DataSourceStreamArrowWriter")  # 4.1
HAS_FILTERS: Final = hasattr(datasource, "Filter")  # 4.1


def require(there: bool, what: str, version: str) -> None:
    """Require a feature of PySpark.

    Raises: ConfigurationError: the feature is missing; the message names the version that has it.
    """
    if not there:
        raise ConfigurationError(f"{what} PySpark {version} or newer: this is {pyspark.__version__}")
