"""The page of users' mistakes shows the current messages, each one line of an aiokwire error."""

from __future__ import annotations

import difflib

import pytest

from aiokwire.errors import KafkaError
from tests.mistakes import PAGE, SECTIONS, page, table

# Errors raised by Python before any code of aiokwire runs.
PYTHONS_OWN = (
    "with Producer(address): pass",
    'for record in Consumer("orders", bootstrap_servers=address): pass',
)


@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::ResourceWarning")
async def test_a_hundred_mistakes_raise_the_messages_of_the_page() -> None:
    rows = await table()
    assert len(rows) == sum(len(statements.strip().splitlines()) for statements in SECTIONS.values()) >= 100
    for _, statement, error, text in rows:
        if statement not in PYTHONS_OWN:
            assert isinstance(error, KafkaError), f"{statement} raised {error!r}"
        assert text, statement
        assert "\n" not in str(error), f"{statement}: an error is one line"
    new, committed = page(rows).splitlines(), PAGE.read_text().splitlines()
    changes = "\n".join(difflib.unified_diff(committed, new, "docs/mistakes.md", "today", lineterm="", n=0))
    assert not changes, f"regenerate the page with `python -m tests.mistakes`:\n{changes}"
