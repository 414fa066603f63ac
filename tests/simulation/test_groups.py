"""Random histories of groups; `python -m tests.simulation.explore --groups` plays thousands."""

from __future__ import annotations

import dataclasses

import pytest

from tests.simulation.groups import Plan, draw, play

SEEDS = [3, 34, 47, *range(200, 206)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_of_a_group_ends_with_every_promise_kept(seed: int) -> None:
    outcome = play(seed)
    assert not outcome.wrong, f"seed {seed}: {outcome.wrong}"


@pytest.mark.parametrize("protocol", ["classic", "consumer", "auto"])
def test_each_protocol_keeps_its_promises_in_the_same_history(protocol: str) -> None:
    def plan(seed: int) -> Plan:
        return dataclasses.replace(draw(seed), protocol=protocol, strategy="cooperative-sticky", automatic=False)

    outcome = play(157, plan)
    assert not outcome.wrong, outcome.wrong


def test_a_seed_gives_the_same_history_again() -> None:
    assert play(7).trace_hash == play(7).trace_hash != play(8).trace_hash
