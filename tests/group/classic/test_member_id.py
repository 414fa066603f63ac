"""The ids that a member joins with: it never abandons an id that a coordinator may still expect."""

from __future__ import annotations

import pytest

from aiokwire.group.classic.generation import MemberId


@pytest.fixture
def known() -> MemberId:
    """A member of a complete generation."""
    known = MemberId()
    known.given("a")
    known.settled()
    return known


def test_a_refused_id_is_not_used_again_while_the_coordinator_stays(known: MemberId) -> None:
    known.refused()
    assert known.current == ""
    known.given("b")
    assert known.current == "b"


def test_a_coordinator_that_reloaded_the_group_may_know_the_former_id(known: MemberId) -> None:
    known.refused()
    known.moved()
    assert known.current == "a"
    known.refused()
    assert known.current == ""


def test_an_id_received_meanwhile_is_tried_first(known: MemberId) -> None:
    known.refused()
    known.given("b")
    known.moved()
    assert known.current == "b"
    known.refused()
    assert known.current == "a"


def test_a_new_id_refused_before_its_generation_is_complete_leads_to_the_former_one(known: MemberId) -> None:
    known.refused()
    known.given("b")
    known.refused()
    assert known.current == "a"
    known.refused()
    assert known.current == ""


def test_a_complete_generation_drops_the_former_id(known: MemberId) -> None:
    known.refused()
    known.given("b")
    known.settled()
    known.moved()
    assert known.current == "b"


def test_a_member_without_a_generation_has_no_former_id() -> None:
    new = MemberId()
    new.moved()
    assert new.current == ""
    new.refused()
    assert new.current == ""


def test_a_member_that_left_has_no_id(known: MemberId) -> None:
    known.refused()
    known.given("b")
    assert known.left() == "b"
    known.moved()
    assert known.current == ""
