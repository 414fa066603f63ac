"""Normalization of users' values; invalid values are refused with their name."""

from __future__ import annotations

import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.spark.pipelines.declaration import NAME, TABLE, check_name, columns, errors_of, texts


def test_options_become_texts() -> None:
    assert texts({"a": True, "b": 1, "c": 0.5, "d": "x"}, "o") == {"a": "true", "b": "1", "c": "0.5", "d": "x"}
    for given in (["a"], {"a": [1]}, {"a": None}):
        with pytest.raises(ConfigurationError, match=r"^o"):
            texts(given, "o")


def test_the_name_of_a_table_has_fewer_characters_than_that_of_a_pipeline() -> None:
    check_name("totals.v-1", NAME, "pipeline")
    with pytest.raises(ConfigurationError, match=r"^source: a name is made of letters, digits and _, not 'totals.v-1'"):
        check_name("totals.v-1", TABLE, "source")


def test_one_column_is_a_list_of_one() -> None:
    assert columns("day", "c") == columns(["day"], "c") == ("day",)
    for given in (1, [""], [1]):
        with pytest.raises(ConfigurationError, match="must be column names"):
            columns(given, "c")


def test_an_error_names_the_owner_of_the_option() -> None:
    with pytest.raises(ConfigurationError, match=r"^sink 'totals': it is odd$"), errors_of("sink 'totals'"):
        raise ConfigurationError("it is odd")
