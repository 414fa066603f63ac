"""What the programs of `programs.py` are expected to do, observed in the broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

import anyio
import anyio.to_thread

from aiokwire import Consumer, Producer
from aiokwire.admin import Admin
from integration.compat.environment import ROOT

_END_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.1
# What Python, asyncio and aiokafka report of something that was left open.
_COMPLAINTS: Final = ("Unclosed", "was destroyed but it is pending", "never awaited", "never retrieved")


class Running:
    """A program in its own process, and the broker that it uses."""

    def __init__(self, command: Sequence[str], folder: Path, bootstrap_servers: str, topics: Sequence[str]) -> None:
        self._command = command
        self._folder = folder
        self._topics = topics
        self._options: dict[str, Any] = {"bootstrap_servers": bootstrap_servers}
        self._admin = Admin(**self._options)
        self._stdout = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in __aexit__

    async def __aenter__(self) -> Self:
        await self._admin.start()
        for name in self._topics:
            await self._admin.create_topic(name, 2)
        self._process = self._started()
        return self

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.PIPE,
            stdout=self._stdout,
            stderr=subprocess.STDOUT,
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        if error is not None:
            error.add_note(self.output[-3000:])
        self._stdout.close()
        await self._admin.close()

    @property
    def output(self) -> str:
        """What the program has printed."""
        with open(f"/dev/fd/{self._stdout.fileno()}") as again:
            return again.read()

    @property
    def has_ended(self) -> bool:
        """Whether the program has ended."""
        return self._process.poll() is not None

    async def end(self) -> None:
        """Interrupt the program, unless it has ended.

        Raises: AssertionError: it complains about something that was left open.
        """
        if not self.has_ended:
            self._process.send_signal(signal.SIGINT)
        await self.ended()
        found = [complaint for complaint in _COMPLAINTS if complaint in self.output]
        assert not found, f"it left something open: {found}"

    async def ended(self) -> int:
        """Wait until the program ends; return its status."""
        return await anyio.to_thread.run_sync(self._process.wait, _END_SECONDS)

    async def answer(self, line: str) -> int:
        """Write a line to the program's input; return the status with which it then ends."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode())
        self._process.stdin.close()
        return await self.ended()

    async def until(self, is_so: Callable[[], Awaitable[bool]], what: str) -> None:
        """Wait until something is so.

        Raises: AssertionError: the program ended before.
        """
        while not await is_so():
            assert not self.has_ended, f"the program ended before {what}"
            await anyio.sleep(_POLL_SECONDS)

    async def records(
        self, topic: str, count: int, isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    ) -> list[Any]:
        """Return the first `count` records of a topic, or more; wait for them."""
        found: list[Any] = []
        options = self._options | {"isolation_level": isolation, "auto_offset_reset": "earliest"}
        async with Consumer(topic, **options) as consumer:
            while len(found) < count:
                found += await consumer.getmany()
        return found

    async def ends(self, topic: str, isolation: Literal["read_committed", "read_uncommitted"]) -> list[int]:
        """Return the offsets after the last records of a topic's partitions."""
        async with Consumer(topic, **self._options, isolation_level=isolation) as consumer:
            await consumer.joined()
            return sorted((await consumer.end_offsets(consumer.assignment)).values())

    async def send(self, topic: str, *records: tuple[bytes, bytes]) -> None:
        """Send keys and values."""
        async with Producer(**self._options) as producer:
            for key, value in records:
                await producer.send(topic, value, key=key)

    async def committed(self, group: str, topic: str, count: int) -> None:
        """Wait until a group's offsets of a topic add up to `count`."""

        async def is_so() -> bool:
            found = await self._admin.list_group_offsets(group)
            return sum(each.offset for tp, each in found.items() if each and tp.topic == topic) == count

        await self.until(is_so, f"{group!r} committed {count}")

    async def members(self, group: str) -> int:
        """Wait until a group is stable; return its number of members."""

        async def is_stable() -> bool:
            return (await self._admin.describe_group(group)).state == "Stable"

        await self.until(is_stable, f"{group!r} was stable")
        return len((await self._admin.describe_group(group)).members)


Check = Callable[[Running], Awaitable[str]]


async def produces(running: Running) -> str:
    """A record each second."""
    found = await running.records("test-topic", 2)
    assert {record.value for record in found} == {b"Super message"}
    return f"{len(found)} records in test-topic"


async def produces_batches(running: Running) -> str:
    """1,000 records in batches."""
    found = await running.records("my_topic", 1000)
    assert sorted(record.value for record in found) == sorted(b"Test message %d" % number for number in range(1000))
    assert await running.ended() == 0
    return "1,000 different records in my_topic"


async def aborts_a_transaction(running: Running) -> str:
    """A record in a transaction, which an exception after a line of input aborts."""
    (record,) = await running.records("test-topic", 1, "read_uncommitted")
    assert record.value == b"Super transactional message"
    assert await running.ends("test-topic", "read_committed") == [0, 0], "the transaction is not open"
    assert await running.answer("\n") == 1, "the program's ValueError is not its end"
    assert "ValueError" in running.output
    assert await running.ends("test-topic", "read_committed") == [0, 2], "there is no abort marker after the record"
    return "an open transaction with 1 record in test-topic, then its abort marker"


async def prints_what_is_sent(running: Running) -> str:
    """Prints the values of new records; `latest`, so that they are sent until one is read."""

    async def is_read() -> bool:
        await running.send("my_topic", (b"key", b"hello"))
        return "b'hello'" in running.output

    await running.until(is_read, "it printed a record")
    return "records of my_topic printed"


async def counts_keys_as_a_member(running: Running) -> str:
    """Counts keys in a group, and keeps the counts in files, which have fixed names."""
    files = [Path(f"/tmp/my-partition-state-test-{partition}.json") for partition in range(2)]
    for file in files:
        file.unlink(missing_ok=True)
    await running.send("test", *((b"%d" % (number % 5), b"") for number in range(50)))

    async def is_counted() -> bool:
        found = [json.loads(file.read_text() or "{}") for file in files if file.exists()]
        counts: Counter[str] = Counter()
        for each in found:
            counts.update(each.get("counts", {}))
        return counts == {str(key): 10 for key in range(5)}

    await running.until(is_counted, "50 records were counted")
    members = await running.members("my_group")
    await running.end()
    for file in files:
        file.unlink()
    assert members == 1
    return "50 records of test counted by the member of my_group"


async def commits_after_processing(running: Running) -> str:
    """Publishes one record, processes it, and commits it."""
    (record,) = await running.records("test", 1)
    assert record.value == b"Hi!"
    await running.committed("group", "test", 1)
    return "1 record in test, committed by group"


async def answers_in_batches(running: Running) -> str:
    """Publishes one record, whose handler publishes two, which another handler reads."""
    found = await running.records("response", 2)
    assert sorted(record.value for record in found) == [b"FastStream", b"hi"]
    return "1 record in test, and its handler's 2 in response"
