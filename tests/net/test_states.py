"""The transition table of a connection."""

from __future__ import annotations

from aiokwire.net.states import TRANSITIONS, ConnectionEvent, ConnectionState


def test_every_state_is_reachable() -> None:
    reached = {ConnectionState.NEW}
    while more := {target for (source, _), target in TRANSITIONS.items() if source in reached} - reached:
        reached |= more
    assert reached == set(ConnectionState)


def test_every_state_but_the_last_two_can_be_closed() -> None:
    closable = {source for source, event in TRANSITIONS if event is ConnectionEvent.CLOSE}
    assert closable == set(ConnectionState) - {ConnectionState.CLOSING, ConnectionState.CLOSED}


def test_a_closed_connection_stays_closed() -> None:
    assert not [source for source, _ in TRANSITIONS if source is ConnectionState.CLOSED]


def test_every_event_is_used() -> None:
    assert {event for _, event in TRANSITIONS} == set(ConnectionEvent)
