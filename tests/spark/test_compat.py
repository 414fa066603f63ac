"""Features of the installed PySpark, and the errors for those it lacks."""

from __future__ import annotations

import pyspark
import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.spark import compat


def test_each_pyspark_version_is_recognized_by_its_features() -> None:
    version = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    found = compat.HAS_FILTERS, compat.HAS_STREAM_WRITES, compat.HAS_STREAM_READS
    assert found == (version >= (4, 1), version >= (4, 1), version >= (4, 2))


def test_an_error_names_the_pyspark_version_that_has_the_missing_feature() -> None:
    compat.require(True, "pushdown needs", "4.1")
    with pytest.raises(ConfigurationError, match=r"pushdown needs PySpark 9\.1 or newer: this is \d+\.\d+"):
        compat.require(False, "pushdown needs", "9.1")
