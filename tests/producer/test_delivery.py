"""What delivery promises at its edges: deadlines that end while the answer is lost, sequences that break under way."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import DeliveryFailed
from aiokwire.producer import Producer
from tests.producer.conftest import Script, ScriptedCluster, scripted_cluster

Quick = dict[str, Any]


async def until_asked(cluster: ScriptedCluster, count: int) -> None:
    with anyio.fail_after(5):
        while len(cluster.node.requests) < count:
            await anyio.lowlevel.checkpoint()


# --- a deadline that ends while the answer is lost --------------------------------------------------------------------


@pytest.mark.parametrize("written", [2, 1, 0], ids=["both written", "the first written", "none written"])
@pytest.mark.parametrize("expires", ["in flight", "retrying"])
async def test_a_batch_behind_an_expired_one_is_not_doubled_by_the_new_epoch(
    expires: str, written: int, quick: Quick
) -> None:
    """Both answers are lost, and the first batch's time is over before it could be asked for again. The second may
    have been written: it is asked for under its old number before it may go under the next epoch (KIP-360)."""
    async with (
        scripted_cluster() as cluster,
        Producer(cluster.bootstrap_servers, **quick, linger_ms=0, delivery_timeout_ms=400) as producer,
    ):
        await producer.partitions_for("t")
        node = cluster.node
        node.mute = True
        node.on_partition = lambda tp, data: None if len(node.requests) <= written else int(ErrorCode.NETWORK_EXCEPTION)
        first = producer.submit_nowait("t", b"first")
        await until_asked(cluster, 1)
        with anyio.move_on_after(0.25):
            await first
        second = producer.submit_nowait("t", b"second")
        await until_asked(cluster, 2)
        if expires == "retrying":
            node.stop()
        with pytest.raises(DeliveryFailed, match=expires):
            await first
        node.stop()
        node.mute = False
        node.on_partition = Script()
        await node.start()
        await second
        await producer.send("t", b"third")
        assert cluster.values() == ([b"first"] if written else []) + [b"second", b"third"]
