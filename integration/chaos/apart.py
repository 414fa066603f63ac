"""A member in a process of its own, so that it can be killed: it says on its output what it is handed, and its parent
enters that in the account.

A record is told before the member asks for more, so before it commits it: what a killed member had not told was not
committed either, and comes again. The parent holds the child's input: a word lets it begin, and its end lets it leave,
also when the parent is gone.
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

# What a line begins with.
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
_BACKLOG_BYTES: Final = 1 << 20  # a parent that is slow to read stops no child


class Apart:
    """The parent's side; it has the shape of a `Member`."""

    def __init__(self, name: str, topic: str, account: Account, *, log: Path | None = None, **options: Any) -> None:
        """`log`: a directory to log in."""
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
        self.errors: list[str] = []  # what it was raised
        self.lost_partitions = 0
        self.generations: set[int] = set()  # that it joined, by the classic protocol

    def __str__(self) -> str:
        return self._name

    @property
    def owned(self) -> frozenset[int]:
        """The partitions that it reads, or read when it was killed."""
        return frozenset(self._owned)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Until the process has ended; it has started when it can `begin`, with all that takes long behind it."""
        try:
            async with await anyio.open_process(self._command, stdin=subprocess.PIPE, stderr=None) as process:
                self._process = process
                assert process.stdout is not None
                rest = ""
                async for text in TextReceiveStream(process.stdout):
                    *lines, rest = (rest + text).split("\n")
                    for line in lines:
                        self._take(*json.loads(line), task_status=task_status)
                code = await process.wait()
            if code and not self._killed:
                self.errors.append(f"ended with {code}")
        finally:
            self._stopped.set()

    async def begin(self) -> None:
        """Returns when its consumer has started."""
        assert self._process is not None
        assert self._process.stdin is not None
        await self._process.stdin.send(_BEGIN)
        with anyio.fail_after(_PATIENCE):
            await self._started.wait()

    async def stop(self) -> None:
        """Returns when it has committed, left and ended."""
        assert self._process is not None
        assert self._process.stdin is not None
        await self._process.stdin.aclose()
        await self._stopped.wait()

    async def kill(self) -> None:
        """SIGKILL; returns when all is entered that it had told."""
        assert self._process is not None
        self._killed = True
        self._process.kill()
        await self._stopped.wait()

    def _take(self, kind: str, *said: Any, task_status: anyio.abc.TaskStatus[None]) -> None:
        if kind == _RECORD:
            partition, number, sent_at, known_at, handed_at = said
            self._enter(partition, number, Moment(*sent_at), Moment(*known_at), Moment(*handed_at))
        elif kind == _ASSIGNED:
            self._account.assigned(self, said[0])
            self._owned.update(said[0])
        elif kind == _GENERATION:
            self.generations.add(said[0])
        elif kind == _ERROR:
            self.errors.append(said[0])
        elif kind == _READY:
            task_status.started()
        elif kind == _STARTED:
            self._started.set()
        else:
            self._owned.difference_update(said[0])
            self.lost_partitions += len(said[0]) * (kind == _LOST)

    def _enter(self, partition: int, number: int, sent_at: Moment, known_at: Moment, handed_at: Moment) -> None:
        """Two processes waited for cores, that of the feed and the member's: both waits count, as the member's."""
        starved = known_at.starved - max(0.0, now().starved - sent_at.starved)
        self._account.handed_over(self, partition, number, sent_at=Moment(sent_at.at, starved), now=handed_at)


class _Teller:
    """The member's sink."""

    def __init__(self) -> None:
        self._known_at = now()  # before the records that are told now

    def assigned(self, member: object, partitions: Collection[int]) -> None:
        """See `Sink`."""
        _say(_ASSIGNED, sorted(partitions))

    def handed_over(self, member: object, partition: int, number: int, *, sent_at: Moment, now: Moment) -> None:
        """See `Sink`."""
        _say(_RECORD, partition, number, sent_at, self._known_at, now)
        self._known_at = now


class _Child(Member):
    """The member; it also says what its parent cannot see."""

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """See `RebalanceListener`."""
        _say(_GIVEN_UP, sorted(tp.partition for tp in partitions))

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """See `RebalanceListener`."""
        _say(_LOST, sorted(tp.partition for tp in partitions))


def log_to(file: Path) -> None:
    """Have all that this process's clients do written there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    logging.getLogger("aiokwire").setLevel(logging.DEBUG)
    logging.basicConfig(filename=file, format="%(asctime)s %(process)d %(name)s %(message)s")


def _say(*what: object) -> None:
    line = json.dumps(what).encode() + b"\n"
    while line:
        line = line[os.write(1, line) :]


async def _live(name: str, topic: str, options: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # asyncio's children have pipes, uvloop's have sockets
        fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, _BACKLOG_BYTES)
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(1)) as output:
        output.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BACKLOG_BYTES)
    _say(_READY)
    await anyio.wait_readable(0)
    if os.read(0, len(_BEGIN)):
        member = _Child(name, topic, _Teller(), **options)
        async with anyio.create_task_group() as tasks:
            await tasks.start(member.run)
            _say(_STARTED)
            await anyio.wait_readable(0)  # its end
            await member.stop()
        for error in member.errors:
            _say(_ERROR, error)


if __name__ == "__main__":
    logging.getLogger("aiokwire").setLevel(logging.CRITICAL)  # brokers that go away are the point here
    if len(sys.argv) > 2:
        log_to(Path(sys.argv[2]))
    with Rebalances(lambda number: _say(_GENERATION, number)):
        uvloop.run(_live(*json.loads(sys.argv[1])))
