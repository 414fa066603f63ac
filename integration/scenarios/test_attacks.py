"""Attacks that no test of the package repeats at this size; all: `integration.attacks`."""

from __future__ import annotations

import pytest

from integration.attacks.__main__ import measure


@pytest.mark.parametrize("name", ["V1b", "V3", "V8", "V9", "V13", "V13c", "V13d", "V15", "V16"])
def test_an_attack_costs_no_more_memory_and_processor_time_than_its_bar(name: str) -> None:
    figures = measure(name)
    broken = [f"{figure.text}, more than {figure.bar_text}" for figure in figures if not figure.is_held]
    assert not [text for text in broken if " ms" not in text], "times depend on the machine's load"
