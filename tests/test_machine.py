"""A state machine follows its table."""

from __future__ import annotations

import enum

import pytest

from aiokwire.machine import InvalidTransition, Machine, mermaid


class Light(enum.Enum):
    RED = enum.auto()
    GREEN = enum.auto()


class Signal(enum.Enum):
    GO = enum.auto()
    STOP = enum.auto()


TABLE = {(Light.RED, Signal.GO): Light.GREEN, (Light.GREEN, Signal.STOP): Light.RED}


def test_an_event_changes_the_state_according_to_the_table() -> None:
    machine = Machine("light", TABLE, Light.RED)
    assert machine.can(Signal.GO)
    assert machine.fire(Signal.GO) is Light.GREEN
    assert repr(machine) == "<Machine light GREEN>"


def test_an_event_without_a_transition_raises() -> None:
    machine = Machine("light", TABLE, Light.RED)
    with pytest.raises(InvalidTransition, match="light: no transition from RED by STOP"):
        machine.fire(Signal.STOP)
    assert machine.state is Light.RED


def test_a_table_is_drawn_as_a_diagram() -> None:
    assert mermaid(TABLE, Light.RED) == (
        "stateDiagram-v2\n    [*] --> RED\n    RED --> GREEN: GO\n    GREEN --> RED: STOP\n"
    )
