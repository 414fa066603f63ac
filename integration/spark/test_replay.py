"""`aiokwire spark replay`, stopped, killed and restarted: each record is replayed once."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.spark import flights
from integration.spark.process import stopped, summary

pytestmark = pytest.mark.timeout(600)


async def test_each_record_is_replayed_once(modern_broker: BrokerUnderTest, tmp_path: Path) -> None:
    count = flights.COUNT
    source, target = f"flights-{tmp_path.name}", f"again-{tmp_path.name}"
    await flights.create(modern_broker, source)
    await flights.create(modern_broker, target)
    await flights.send(modern_broker, source, range(count))
    path, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    servers = modern_broker.bootstrap_servers
    assert summary(tmp_path, "archive", source, "--to", str(path), "-b", servers)["records"] == count

    arguments = ["replay", str(path), "--to", target, "-b", servers, "--checkpoint", str(checkpoint)]
    arguments += ["--delivery", "exactly-once"]
    small = [*arguments, "--round", "5000"]

    def number() -> int:
        state = checkpoint / "replay.json"
        return int(json.loads(state.read_text())["number"]) if state.exists() else 0

    def more(rounds: int) -> Callable[[str], bool]:
        """Return a check that `rounds` more rounds are done than now."""
        goal = number() + rounds
        return lambda _output: number() >= goal

    ended = stopped(tmp_path, *small, when=more(2))
    assert ended.status == 0, ended.errors
    for _ in range(2):
        ended = stopped(tmp_path, *small, by=signal.SIGKILL, when=more(2))
        assert ended.status == -signal.SIGKILL
    rest = summary(tmp_path, *arguments)
    assert 0 < rest["records"] < count
    before_them, found = await flights.read(modern_broker, source), await flights.read(modern_broker, target)
    for partition in range(PARTITIONS):
        expected = [flight for home, flight in before_them if home == partition]
        assert [flight for home, flight in found if home == partition] == expected
    assert summary(tmp_path, *arguments)["records"] == 0
