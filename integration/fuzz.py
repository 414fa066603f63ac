"""Structured fuzzing: malformed requests to a broker process, malformed responses for the codec.

    python -m integration.fuzz requests --count 1_000_000 [--security login] [--seed 1]
    python -m integration.fuzz responses --count 1_000_000 [--seed 1]

Requests of every API and version carry known and random values; more than half are malformed (see
`integration.mutation`). With `--security tls` they are sent over TLS before any login, with `login`
after one. Meanwhile another client asks for metadata every 20 ms. The command ends with status 1 if
the broker ends, logs a stack trace, keeps memory, or lets the other client wait too long. Responses
of every API are mutated and decoded: anything but a message or a ProtocolViolation fails.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import random
import ssl
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import uvloop

from aiokwire import Admin
from aiokwire.errors import ProtocolViolation
from aiokwire.protocol import Response, decode_response, encode_request, encode_response
from aiokwire.protocol.messages import sasl_authenticate, sasl_handshake
from integration.embedded import EmbeddedProcess
from integration.mutation import BEFORE_LOGIN, Mutator
from tests.protocol.samples import all_types, sample, versions_of

FRAMES = 20_000  # made before the run; each is mutated differently every time it is sent
PIPELINED = 20
WAIT_SECONDS = 0.03  # for responses; a long poll is then left alone, or its connection closed
PING_SECONDS = 0.02
PATIENCE = 0.25  # seconds for the other client's 99th percentile
MIB_ALLOWED = 150.0  # growth over the run: topics that the requests created, and the allocator


class Target:
    """The broker process and the connections to it."""

    def __init__(self, port: int, context: ssl.SSLContext | None, password: str) -> None:
        """`password`: of the user admin, who logs in; empty: no login."""
        self._port = port
        self._context = context
        self._password = password
        self.sent = 0
        self.closed = 0

    async def attack(self, seed: int, frames: list[bytes], numbers: Iterator[int], count: int) -> None:
        """Send malformed requests over one connection after the other."""
        mutator, rng = Mutator(seed), random.Random(seed)
        while self.sent < count:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._context)
                if self._password:
                    await self._log_in(reader, writer)
            except (OSError, EOFError):
                await anyio.sleep(0.01)
                continue
            with contextlib.suppress(OSError, RuntimeError):  # uvloop: a transport that the broker closed
                while self.sent < count:
                    batch = [mutator.mutated(rng.choice(frames)) for _ in range(PIPELINED)]
                    writer.writelines(len(frame).to_bytes(4, "big") + frame for frame in batch)
                    self.sent += len(batch)
                    next(numbers)
                    await writer.drain()
                    if not await self._is_answered(reader, rng):
                        break
            self.closed += 1
            writer.close()

    async def _is_answered(self, reader: asyncio.StreamReader, rng: random.Random) -> bool:
        """Return whether the connection can be used again."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                return bool(await reader.read(1 << 18))
        except TimeoutError:
            return rng.random() < 0.5

    async def _log_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        token = f"\0admin\0{self._password}".encode()
        for request, version in (
            (sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"), 1),
            (sasl_authenticate.SaslAuthenticateRequest(auth_bytes=token), 2),
        ):
            writer.writelines(encode_request(request, version, 1, "fuzz"))
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


async def ping(waits: list[float], options: dict[str, Any]) -> None:
    """Request metadata as another client, until cancelled; keep how long each response took."""
    async with Admin(**options) as admin:
        while True:
            began = anyio.current_time()
            await admin.describe_cluster()
            waits.append(anyio.current_time() - began)
            await anyio.sleep(PING_SECONDS)


def resident_mib(pid: int) -> float:
    """The memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20


async def fuzz_requests(count: int, connections: int, seed: int, security: str) -> list[str]:
    """Return what went wrong."""
    settings = {"num.partitions": "1", "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512"} if security else {}
    broker = EmbeddedProcess(settings=settings, secure=bool(security))
    broker.start()
    options = broker.client_options
    context = ssl.create_default_context(cafile=options["ssl_cafile"]) if security else None
    password = options["sasl_plain_password"] if security == "login" else ""
    waits: list[float] = []
    try:
        mutator = Mutator(seed)
        frames = mutator.frames(FRAMES)
        if security == "tls":  # all others are refused
            frames += mutator.frames(4 * FRAMES, BEFORE_LOGIN)
        before = resident_mib(broker.pid)
        target, numbers = Target(broker.port, context, password), itertools.count()
        began = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ping, waits, options)
            async with anyio.create_task_group() as attackers:
                for number in range(connections):
                    attackers.start_soon(target.attack, seed * 1000 + number, frames, numbers, count)
            tasks.cancel_scope.cancel()
        seconds, after = anyio.current_time() - began, resident_mib(broker.pid)
    finally:
        log = (broker.data_dir.parent / f"{broker.data_dir.name}.stderr").read_text()
        broker.stop()
    slowest = sorted(waits)
    p99 = slowest[int(len(slowest) * 0.99)]
    print(
        f"{target.sent:,} requests in {seconds:.0f} s over {target.closed:,} connections, memory {before:.0f} to "
        f"{after:.0f} MiB, log {len(log):,} bytes; other client: {len(waits)} answers, median "
        f"{statistics.median(waits) * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms, longest {slowest[-1] * 1000:.0f} ms"
    )
    faults = []
    if "Traceback" in log:
        faults.append("the broker's log has a stack trace:\n" + log[log.index("Traceback") :][:3000])
    if p99 > PATIENCE:
        faults.append(f"the other client's 99th percentile is above {PATIENCE * 1000:.0f} ms")
    if after - before > MIB_ALLOWED:
        faults.append(f"the broker keeps {after - before:.0f} MiB more than before")
    return faults


def fuzz_responses(count: int, seed: int) -> list[str]:
    """Return what went wrong."""
    rng, mutator = random.Random(seed), Mutator(seed)
    kinds: list[type[Response]] = [kind for kind in all_types() if issubclass(kind, Response)]
    outcomes = {"read": 0, "refused": 0}
    frames: list[tuple[type[Response], int, bytes]] = []
    for kind in kinds:
        for version in versions_of(kind):
            message = sample(kind, rng, kind.VERSIONS, version)
            assert isinstance(message, Response)
            frames.append((kind, version, b"".join(encode_response(message, version, 1))[4:]))
    for _ in range(count):
        kind, version, frame = rng.choice(frames)
        try:
            decode_response(bytearray(mutator.mutated(frame)), kind, version)
            outcomes["read"] += 1
        except ProtocolViolation:
            outcomes["refused"] += 1
        except Exception as error:
            return [f"{kind.__name__} v{version}: {error!r}"]
    print(f"{count:,} responses of {len(kinds)} APIs: {outcomes['read']:,} read, {outcomes['refused']:,} refused")
    return []


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m integration.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["requests", "responses"])
    parser.add_argument("--count", type=lambda text: int(text.replace("_", "")), default=100_000)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--security", choices=["", "tls", "login"], default="")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.what == "requests":
        faults = uvloop.run(fuzz_requests(given.count, given.connections, given.seed, given.security))
    else:
        faults = fuzz_responses(given.count, given.seed)
    for fault in faults:
        print(fault, file=sys.stderr)
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
