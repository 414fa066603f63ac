"""Lines that peers cause in the log: escaped, a few for each address, lasting errors on change."""

from __future__ import annotations

import logging
import struct

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.broker.peers import MOST_ADDRESSES, MOST_SUBJECTS, PER_WINDOW, REPEAT_AFTER, LastingErrors, PeerLog
from tests.broker.raw import RawClient, batch, produce_request
from tests.simulation.loop import SimLoop, run


async def test_one_address_gets_five_lines_and_then_a_sum(caplog: pytest.LogCaptureFixture) -> None:
    peers = PeerLog()
    for port in range(346):
        peers.warn(f"10.0.0.1:{port}", "nonsense")
    peers.warn("10.0.0.2:1", "nonsense")
    assert len(caplog.records) == PER_WINDOW + 1
    peers.flush()
    assert len(caplog.records) == PER_WINDOW + 2
    assert "closed 341 more connections from 10.0.0.1" in caplog.text
    caplog.clear()
    peers.warn("10.0.0.1:1", "nonsense")
    assert len(caplog.records) == 1, "a new window"
    peers.flush()


async def test_the_addresses_that_are_counted_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    peers = PeerLog()
    for number in range(3 * MOST_ADDRESSES):
        peers.warn(f"fe80::{number:x}:1", "nonsense")
    assert len(caplog.records) == MOST_ADDRESSES + PER_WINDOW
    peers.flush()
    assert f"closed {2 * MOST_ADDRESSES - PER_WINDOW} more connections from other addresses" in caplog.text


async def test_bad_requests_of_a_client_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "aiokwire.broker"):
        async with Broker() as broker:
            for _ in range(20):
                client = await RawClient.connect(broker)
                client.writer.write(struct.pack(">ihhi", 8, 999, 0, 1))
                assert await client.closed_by_broker()
                await client.close()
    assert len(caplog.records) == PER_WINDOW + 1
    assert "closed 15 more connections" in caplog.text


async def test_names_in_requests_cannot_forge_a_log_line(client: RawClient, caplog: pytest.LogCaptureFixture) -> None:
    name = "\x1b[31mred\r\nFAKE LOG LINE\x00\u202e"
    client.send(produce_request(name, batch([b"a"]), acks=0), 9)
    assert await client.closed_by_broker()
    [record] = caplog.records
    assert record.getMessage().isprintable()
    assert r"\x1b[31mred\r\nFAKE LOG LINE\x00\u202e" in record.getMessage()


LASTING = logging.getLogger("tests.lasting")


async def test_a_lasting_error_is_logged_on_change_and_for_each_subject(caplog: pytest.LogCaptureFixture) -> None:
    errors = LastingErrors()
    for group, cause in [("g", "full"), ("g", "full"), ("h", "full"), ("g", "broken"), ("g", "broken"), ("g", "full")]:
        errors.log(LASTING, f"group {group!r}", OSError(cause))
    assert caplog.messages == ["group 'g': full", "group 'h': full", "group 'g': broken", "group 'g': full"]


def test_a_lasting_error_is_logged_again_after_a_pause(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        errors = LastingErrors()
        for _ in range(3):
            for _ in range(2):
                errors.log(LASTING, "group 'g'", OSError("full"))
            await anyio.sleep(REPEAT_AFTER)

    run(SimLoop(seed=1), scenario())
    assert len(caplog.messages) == 3


async def test_the_subjects_of_lasting_errors_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    errors = LastingErrors()
    for number in range(3 * MOST_SUBJECTS):
        errors.log(LASTING, f"group {number}", OSError("full"))
    assert len(errors._last) <= MOST_SUBJECTS
    assert len(caplog.messages) == 3 * MOST_SUBJECTS
