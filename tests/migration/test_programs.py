"""Programs before and after their migration: the text, and what they print against a broker.

`programs/` has a pair for each: `NAME.before` uses aiokafka, `NAME.after` is what the codemod makes
of it. Their suffix keeps them away from tools that check the Python files of this project.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aiokwire.migration import migrate_source

PROGRAMS = Path(__file__).parent / "programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.before"))


def before(name: str) -> str:
    return (PROGRAMS / f"{name}.before").read_text()


def after(name: str) -> str:
    return (PROGRAMS / f"{name}.after").read_text()


def test_every_program_has_its_pair() -> None:
    assert len(NAMES) >= 10
    assert sorted(path.stem for path in PROGRAMS.glob("*.after")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_rewritten(name: str) -> None:
    assert migrate_source(before(name)).text == after(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_rewritten_program_is_not_changed_again(name: str) -> None:
    again = migrate_source(after(name))
    assert again.text == after(name)
    assert not again.findings


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", NAMES)
def test_a_program_prints_the_same_before_and_after(name: str, run_program: Callable[..., str]) -> None:
    printed = run_program(before(name))
    assert printed.strip()
    assert run_program(after(name), "-W", "error") == printed
