"""A broker killed in a transaction: a logged decision is completed, the rest is aborted."""

from __future__ import annotations

import random

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.broker.log import MemoryStorage, Storage
from aiokwire.broker.transactions import Identity, TransactionState
from aiokwire.errors import CorruptRecord
from aiokwire.records import BatchBuilder
from tests.broker.raw import RawClient
from tests.broker.transactional import RawProducer, committed_offset, kill, open_transactions, read

S = TransactionState


def start(storage: Storage) -> Broker:
    return Broker(
        storage=storage,
        topics={"t": 2},
        rng=random.Random(3),
        transaction_state_log_num_partitions=3,
        offsets_topic_num_partitions=2,
    )


async def begin(client: RawClient, *, newer: bool) -> RawProducer:
    producer = RawProducer(client, newer=newer)
    assert await producer.init() == 0
    await producer.send("t", b"a")
    await producer.send("t", b"b", partition=1)
    assert await producer.send_offset("g", "t", 5) == 0
    return producer


def state_of(broker: Broker) -> TransactionState:
    one = broker.state.transactions.get("tx")
    assert one is not None
    return one.state


@pytest.mark.parametrize("newer", [False, True], ids=["older", "newer"])
@pytest.mark.parametrize("commit", [True, False])
async def test_a_decision_that_was_logged_is_carried_out_by_the_next_start(
    storage: Storage, newer: bool, commit: bool
) -> None:
    async with start(storage) as broker:
        client = await RawClient.connect(broker)
        producer = await begin(client, newer=newer)
        who = Identity(producer.producer_id, producer.epoch)
        broker.state.transactions.prepare_end("tx", who, commit=commit, client_version=2 if newer else 0)
        assert state_of(broker) is (S.PREPARE_COMMIT if commit else S.PREPARE_ABORT)
        await client.close()
        await kill(broker)
    async with start(storage) as broker:
        assert state_of(broker) is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
        assert open_transactions(broker) == {}
        client = await RawClient.connect(broker)
        assert await read(client, "t") == ([b"a"] if commit else [])
        assert await read(client, "t", partition=1) == ([b"b"] if commit else [])
        assert await committed_offset(client, "g", "t", stable=True) == (0, 5 if commit else -1)
        producer.client = client
        assert await producer.end(commit=commit) == 0  # the response that the client did not receive
        await producer.send("t", b"c")
        assert await producer.end(commit=True) == 0
        assert await read(client, "t") == ([b"a", b"c"] if commit else [b"c"])
        await client.close()


@pytest.mark.parametrize("newer", [False, True], ids=["older", "newer"])
async def test_an_ongoing_transaction_survives_a_kill(storage: Storage, newer: bool) -> None:
    async with start(storage) as broker:
        client = await RawClient.connect(broker)
        producer = await begin(client, newer=newer)
        await client.close()
        await kill(broker)
    async with start(storage) as broker:
        assert state_of(broker) is S.ONGOING
        producer.client = client = await RawClient.connect(broker)
        assert await read(client, "t") == []
        await producer.send("t", b"more")
        assert await producer.end(commit=True) == 0
        assert await read(client, "t") == [b"a", b"more"]
        assert await committed_offset(client, "g", "t") == (0, 5)
        await client.close()


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
@pytest.mark.parametrize("newer", [False, True], ids=["older", "newer"])
async def test_a_producer_at_rest_finds_its_epoch_again(storage: Storage, state: TransactionState, newer: bool) -> None:
    async with start(storage) as broker:
        client = await RawClient.connect(broker)
        producer = RawProducer(client, newer=newer)
        await producer.init()
        if state is not S.EMPTY:
            await producer.send("t", b"a")
            await producer.end(commit=state is S.COMPLETE_COMMIT)
        await client.close()
        await kill(broker)
    async with start(storage) as broker:
        assert state_of(broker) is state
        producer.client = client = await RawClient.connect(broker)
        epoch = producer.epoch
        assert await producer.init(keep=True) == 0
        assert producer.epoch == epoch + 1
        other = RawProducer(client, "other")
        assert await other.init() == 0
        assert other.producer_id > producer.producer_id
        await client.close()


async def test_a_clean_stop_keeps_an_open_transaction_open(storage: Storage) -> None:
    async with start(storage) as broker:
        client = await RawClient.connect(broker)
        producer = await begin(client, newer=True)
        await client.close()
    async with start(storage) as broker:
        producer.client = client = await RawClient.connect(broker)
        assert await producer.end(commit=True) == 0
        assert await read(client, "t") == [b"a"]
        await client.close()


async def test_markers_that_cannot_be_written_are_written_once_they_can() -> None:
    storage = FailingStorage()
    async with start(storage) as broker:
        client = await RawClient.connect(broker)
        producer = await begin(client, newer=True)
        storage.writes_left = 1  # the decision itself
        assert await producer.end(commit=True) == 0
        assert state_of(broker) is S.PREPARE_COMMIT
        assert await read(client, "t") == []
        broker.state.transactions.finish_prepared()
        assert state_of(broker) is S.PREPARE_COMMIT
        storage.writes_left = None
        broker.state.transactions.finish_prepared()
        assert state_of(broker) is S.COMPLETE_COMMIT
        assert await read(client, "t") == [b"a"]
        await client.close()


async def test_what_no_transaction_knows_of_is_aborted_at_the_start() -> None:
    """After a power failure the coordinator's log may have lost what a partition's log has kept."""
    storage = MemoryStorage()
    async with start(storage) as broker:
        client = await RawClient.connect(broker)
        await begin(client, newer=True)
        await client.close()
    for path in [path for path in storage.files if path.startswith("__transaction_state")]:
        if path.endswith(".log"):
            storage.files[path].data = storage.files[path].data[:0]
            storage.files[path].synced = 0
    async with start(storage) as broker:
        assert open_transactions(broker) == {}
        client = await RawClient.connect(broker)
        assert await read(client, "t") == []
        await client.close()


class FailingStorage(MemoryStorage):
    """A disk that fails after a number of writes, like a kill at that place."""

    def __init__(self) -> None:
        super().__init__()
        self.writes_left: int | None = None

    def room(self, more: int) -> int:
        if self.writes_left is None:
            return super().room(more)
        if self.writes_left == 0:
            return -more
        self.writes_left -= 1
        return 0


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("newer", [False, True], ids=["older", "newer"])
async def test_a_kill_at_any_write_leaves_all_of_a_transaction_or_nothing(commit: bool, newer: bool) -> None:
    ended = 0
    for writes in range(30):
        storage = FailingStorage()
        broker = start(storage)
        await broker.start()
        client = await RawClient.connect(broker)
        producer = RawProducer(client, newer=newer)
        assert await producer.init() == 0
        assert await producer.send_offset("g", "t", 4) == 0
        await producer.send("t", b"first")
        assert await producer.end(commit=True) == 0
        storage.writes_left = writes
        answered = False
        try:
            await producer.send("t", b"a")
            await producer.send("t", b"b", partition=1)
            assert await producer.send_offset("g", "t", 5) == 0
            answered = await producer.end(commit=commit) == 0
        except AssertionError:
            answered = False  # an error, because the disk is full
        await client.close()
        with anyio.fail_after(5):
            await kill(broker)
        storage.writes_left = None
        await _check_all_or_nothing(storage, producer, answered=answered, commit=commit)
        ended += answered
    assert ended > 5, "some of the kills come after the end"


async def _check_all_or_nothing(storage: Storage, producer: RawProducer, *, answered: bool, commit: bool) -> None:
    async with start(storage) as broker:
        client = await RawClient.connect(broker)
        producer.client = client
        if not answered:
            successor = RawProducer(client)
            while await successor.init():
                pass
        assert open_transactions(broker) == {}
        happened = answered and commit
        assert await read(client, "t") == ([b"first", b"a"] if happened else [b"first"])
        assert await read(client, "t", partition=1) == ([b"b"] if happened else [])
        assert await committed_offset(client, "g", "t", stable=True) == (0, 5 if happened else 4)
        await client.close()


async def test_a_corrupt_state_log_keeps_the_broker_from_starting() -> None:
    storage = MemoryStorage()
    async with start(storage) as broker:
        topic = broker.state.topics.create_internal("__transaction_state", 1, {})
        builder = BatchBuilder(2, 1000)
        builder.append(5, b"\x00", b"")
        topic.partitions[0].log.append(bytearray(builder.seal()), now_ms=5)
    with pytest.raises(CorruptRecord, match="key of a transaction record is corrupt"):
        await start(storage).start()
