"""A member in its own process, which can be killed: it writes its records to stdout.

A member reports a record before it polls again, and so before it commits it: records that a killed
member has not reported are not committed either, and are delivered again. The parent controls the
child's stdin: a line starts the member, and the end of the input stops it, even when the parent has
died.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc
import uvloop
from anyio.streams.text import TextReceiveStream

from aiokwire import TopicPartition
from integration.chaos.account import Account
from integration.chaos.member import Member
from integration.chaos.moment import Moment, now
from integration.chaos.rebalances import Rebalances

# The first item of a line.
_READY: Final = "ready"
_STARTED: Final = "started"
_ASSIGNED: Final = "assigned"
_GIVEN_UP: Final = "given up"
_LOST: Final = "lost"
_RECORD: Final = "record"
_GENERATION: Final = "generation"
_ERROR: Final = "error"

_BEGIN: Final = b"begin\n"
_PATIENCE: Final = 60.0  # seconds
_BACKLOG_BYTES: Final = 1 << 20  # a slow parent must not block the child


class Apart:
    """The parent's side, with the interface of `Member`."""

    def __init__(self, name: str, topic: str, account: Account, *, log: Path | None = None, **options: Any) -> None:
        """`log`: the directory for the member's log file."""
        self._name = name
        self.client_id = str(options["client_id"])
        self._account = account
        self._command = [sys.executable, "-m", "integration.chaos.apart", json.dumps([name, topic, options])]
        self._command += [str(log / f"{name}.log")] if log is not None else []
        self._process: anyio.abc.Process | None = None
        self._started = anyio.Event()
        self._stopped = anyio.Event()
        self._killed = False
        self._owned: set[int] = set()
        self.errors: list[str] = []  # exceptions of its consumer
        self.lost_partitions = 0
        self.generations: set[int] = set()  # that it joined, with the classic protocol

    def __str__(self) -> str:
        return self._name

    @property
    def owned(self) -> frozenset[int]:
        """The partitions that it reads, or that it read when it was killed."""
        return frozenset(self._owned)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run the process until it ends.

        It has started when its imports are done and it can `begin`.
        """
        try:
            async with await anyio.open_process(self._command, stdin=subprocess.PIPE, stderr=None) as process:
                self._process = process
                assert process.stdout is not None
                rest = ""
                async for text in TextReceiveStream(process.stdout):
                    *lines, rest = (rest + text).split("\n")
                    for line in lines:
                        self._handle(*json.loads(line), task_status=task_status)
                code = await process.wait()
            if code and not self._killed:
                self.errors.append(f"ended with {code}")
        finally:
            self._stopped.set()

    async def begin(self) -> None:
        """Start its consumer."""
        assert self._process is not None
        assert self._process.stdin is not None
        await self._process.stdin.send(_BEGIN)
        with anyio.fail_after(_PATIENCE):
            await self._started.wait()

    async def stop(self) -> None:
        """Let it commit, leave the group and end."""
        assert self._process is not None
        assert self._process.stdin is not None
        await self._process.stdin.aclose()
        await self._stopped.wait()

    async def kill(self) -> None:
        """Send SIGKILL; return when all records that it reported are in the account."""
        assert self._process is not None
        self._killed = True
        self._process.kill()
        await self._stopped.wait()

    def _handle(self, kind: str, *values: Any, task_status: anyio.abc.TaskStatus[None]) -> None:
        if kind == _RECORD:
            partition, number, sent_at, known_at, handed_at = values
            self._enter_record(partition, number, Moment(*sent_at), Moment(*known_at), Moment(*handed_at))
        elif kind == _ASSIGNED:
            self._account.assigned(self, values[0])
            self._owned.update(values[0])
        elif kind == _GENERATION:
            self.generations.add(values[0])
        elif kind == _ERROR:
            self.errors.append(values[0])
        elif kind == _READY:
            task_status.started()
        elif kind == _STARTED:
            self._started.set()
        else:
            self._owned.difference_update(values[0])
            self.lost_partitions += len(values[0]) * (kind == _LOST)

    def _enter_record(self, partition: int, number: int, sent_at: Moment, known_at: Moment, handed_at: Moment) -> None:
        """Add a record.

        Waits for a core of the feed's and of the member's process both count as the member's.
        """
        starved = known_at.starved - max(0.0, now().starved - sent_at.starved)
        self._account.received(self, partition, number, sent_at=Moment(sent_at.at, starved), now=handed_at)


class _OutputSink:
    """The member's sink: writes records to stdout."""

    def __init__(self) -> None:
        self._known_at = now()  # before the records that are reported now

    def assigned(self, member: object, partitions: Collection[int]) -> None:
        """See `Sink`."""
        _write(_ASSIGNED, sorted(partitions))

    def received(self, member: object, partition: int, number: int, *, sent_at: Moment, now: Moment) -> None:
        """See `Sink`."""
        _write(_RECORD, partition, number, sent_at, self._known_at, now)
        self._known_at = now


class _Child(Member):
    """The member; it also reports the partitions it gives up."""

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """See `RebalanceListener`."""
        _write(_GIVEN_UP, sorted(tp.partition for tp in partitions))

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """See `RebalanceListener`."""
        _write(_LOST, sorted(tp.partition for tp in partitions))


def log_to(file: Path) -> None:
    """Log everything that the clients of this process do to `file`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    logging.getLogger("aiokwire").setLevel(logging.DEBUG)
    logging.basicConfig(filename=file, format="%(asctime)s %(process)d %(name)s %(message)s")


def _write(*what: object) -> None:
    line = json.dumps(what).encode() + b"\n"
    while line:
        line = line[os.write(1, line) :]


async def _run_member(name: str, topic: str, options: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # asyncio's children have pipes, uvloop's have sockets
        fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, _BACKLOG_BYTES)
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(1)) as output:
        output.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BACKLOG_BYTES)
    _write(_READY)
    await anyio.wait_readable(0)
    if os.read(0, len(_BEGIN)):
        member = _Child(name, topic, _OutputSink(), **options)
        async with anyio.create_task_group() as tasks:
            await tasks.start(member.run)
            _write(_STARTED)
            await anyio.wait_readable(0)  # the end of the input
            await member.stop()
        for error in member.errors:
            _write(_ERROR, error)


if __name__ == "__main__":
    logging.getLogger("aiokwire").setLevel(logging.CRITICAL)  # outages of brokers are expected
    if len(sys.argv) > 2:
        log_to(Path(sys.argv[2]))
    with Rebalances(lambda number: _write(_GENERATION, number)):
        uvloop.run(_run_member(*json.loads(sys.argv[1])))
