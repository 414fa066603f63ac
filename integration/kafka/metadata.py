"""A Metadata v0 exchange, which every release supports, to wait for brokers and topics."""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass

_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Answer:
    """A Metadata response: the number of brokers, and the leader of each partition."""

    brokers: int
    leaders: dict[int, int]


def ask(host: str, port: int, topic: str | None = None) -> Answer:
    """Send one request; naming a topic creates it if the broker creates topics automatically.

    Raises:
        OSError: the connection was refused or lost.
    """
    named = b"" if topic is None else struct.pack(">h", len(topic)) + topic.encode()
    request = struct.pack(">hhihi", 3, 0, 7, -1, int(topic is not None)) + named
    with socket.create_connection((host, port), timeout=5) as link:
        link.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _exactly(link, 4))
        frame = _exactly(link, size)
    _, brokers = struct.unpack_from(">ii", frame)
    return Answer(brokers, _leaders(frame, brokers) if topic is not None else {})


def create_by_asking(bootstrap: str, topic: str, partitions: int, *, timeout: float = 30.0) -> None:
    """Let the broker create the topic, and wait until each of its partitions has a leader.

    Raises:
        TimeoutError: the topic was not created in time.
    """
    host, port = bootstrap.rsplit(":", 1)
    deadline = time.perf_counter() + timeout
    while True:
        leaders = ask(host, int(port), topic).leaders
        if len(leaders) == partitions and min(leaders.values()) >= 0:
            return
        if time.perf_counter() > deadline:
            raise TimeoutError(f"topic {topic} has {len(leaders)} partitions with leaders {leaders} after {timeout} s")
        time.sleep(_POLL_SECONDS)


def _leaders(frame: bytes, brokers: int) -> dict[int, int]:
    at = 8
    for _ in range(brokers):
        (length,) = struct.unpack_from(">h", frame, at + 4)
        at += 10 + length
    _topics, _error, length = struct.unpack_from(">ihh", frame, at)
    at += 8 + length
    (count,) = struct.unpack_from(">i", frame, at)
    at += 4
    leaders = {}
    for _ in range(count):
        _error, partition, leader, replicas = struct.unpack_from(">hiii", frame, at)
        at += 14 + 4 * replicas
        (in_sync,) = struct.unpack_from(">i", frame, at)
        at += 4 + 4 * in_sync
        leaders[partition] = leader
    return leaders


def _exactly(link: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = link.recv(count - len(data))
        if not part:
            raise ConnectionError("the broker closed the connection")
        data += part
    return bytes(data)
