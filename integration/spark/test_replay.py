"""`aiokwire spark replay`, stopped, killed and started again: each record is in the topic once, in its order."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.spark import verbs

pytestmark = pytest.mark.timeout(600)


async def test_each_record_is_replayed_once(modern_broker: BrokerUnderTest, tmp_path: Path) -> None:
    count = verbs.COUNT
    source, target = f"flights-{tmp_path.name}", f"again-{tmp_path.name}"
    await verbs.create(modern_broker, source)
    await verbs.create(modern_broker, target)
    await verbs.send(modern_broker, source, range(count))
    path, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    servers = modern_broker.bootstrap_servers
    assert verbs.run("archive", source, "--to", str(path), "-b", servers)["records"] == count

    arguments = ["replay", str(path), "--to", target, "-b", servers, "--checkpoint", str(checkpoint)]
    arguments += ["--delivery", "exactly-once"]
    small = [*arguments, "--round", "5000"]

    def number() -> int:
        state = checkpoint / "replay.json"
        return int(json.loads(state.read_text())["number"]) if state.exists() else 0

    assert verbs.end(verbs.start(*small), how=signal.SIGTERM, when=lambda: number() >= 2) == 0
    for _ in range(2):
        before = number()
        status = verbs.end(verbs.start(*small), how=signal.SIGKILL, when=lambda: number() >= before + 2)  # noqa: B023 - ended before the next turn
        assert status == -signal.SIGKILL
    rest = verbs.run(*arguments)
    assert 0 < rest["records"] < count
    before_them, found = await verbs.read(modern_broker, source), await verbs.read(modern_broker, target)
    for partition in range(PARTITIONS):
        expected = [flight for home, flight in before_them if home == partition]
        assert [flight for home, flight in found if home == partition] == expected
    assert verbs.run(*arguments)["records"] == 0
