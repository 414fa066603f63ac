"""Frames from bytes, however the bytes are divided."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import ProtocolViolation
from aiokwire.net import FrameReader
from aiokwire.net.framing import SCRATCH


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def reader(max_size: int = 1 << 20) -> tuple[FrameReader, list[bytearray]]:
    frames: list[bytearray] = []
    return FrameReader(frames.append, max_size=max_size), frames


@given(
    st.lists(st.one_of(st.binary(min_size=4, max_size=40), st.integers(SCRATCH - 8, SCRATCH * 3).map(bytes))),
    st.lists(st.integers(1, SCRATCH * 2), min_size=1),
)
def test_frames_come_out_as_they_went_in_for_any_cut(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(framed, bodies))
    source, frames = reader()
    position = turn = 0
    while position < len(stream):
        piece = stream[position : position + cuts[turn % len(cuts)]]
        source.feed(piece)
        position += len(piece)
        turn += 1
    assert frames == bodies
    assert not source.in_frame


@given(st.binary(max_size=64), st.integers(1, 20))
def test_hostile_bytes_give_frames_or_a_violation_and_take_little_memory(data: bytes, cut: int) -> None:
    source, frames = reader(max_size=100)
    try:
        for start in range(0, len(data), cut):
            source.feed(data[start : start + cut])
    except ProtocolViolation:
        pass
    assert sum(map(len, frames)) <= len(data)


def test_a_large_frame_is_read_straight_into_a_buffer_of_its_exact_size() -> None:
    source, frames = reader()
    body = bytes(range(256)) * 400
    head = source.get_buffer()
    first = framed(body)[: len(head)]
    head[: len(first)] = first
    source.buffer_updated(len(first))
    rest = source.get_buffer()
    assert len(rest) == len(body) + 4 - len(first), "no byte of the next frame can be read into this one"
    rest[:] = body[len(first) - 4 :]
    source.buffer_updated(len(rest))
    assert frames == [body]


def test_a_large_frame_takes_memory_when_its_next_bytes_are_read() -> None:
    source, frames = reader(max_size=1 << 26)
    tracemalloc.start()
    try:
        source.feed((1 << 26).to_bytes(4, "big") + b"abcd")
        assert source.in_frame
        assert source.frame_size == 1 << 26
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    source.feed(bytes((1 << 26) - 4))
    assert [frame[:6] for frame in frames] == [b"abcd\0\0"]


def test_each_frame_has_its_own_buffer() -> None:
    source, frames = reader()
    source.feed(framed(b"aaaa") + framed(b"bbbb"))
    source.feed(framed(b"cccc"))
    assert frames == [b"aaaa", b"bbbb", b"cccc"]
    assert all(type(frame) is bytearray for frame in frames)


def test_a_reader_knows_that_the_stream_stopped_within_a_frame() -> None:
    source, _ = reader()
    assert not source.in_frame
    source.feed(framed(b"abcd")[:5])
    assert source.in_frame


@pytest.mark.parametrize("size", [-1, 0, 3, -(2**31)])
def test_a_frame_shorter_than_any_message_is_a_violation(size: int) -> None:
    source, _ = reader()
    with pytest.raises(ProtocolViolation, match="shorter than any message"):
        source.feed(size.to_bytes(4, "big", signed=True))


def test_the_size_limit_holds_for_later_frames_too() -> None:
    source, frames = reader(max_size=10)
    with pytest.raises(ProtocolViolation, match=r"11 bytes exceeds the limit of 10"):
        source.feed(framed(b"0123456789") + framed(b"0123456789a"))
    assert frames == [b"0123456789"]


@pytest.mark.parametrize(
    ("greeting", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "HTTP reply"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "TLS alert"),
        (b"\x16\x03\x01\x02\x00\x01", "TLS handshake"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
        (b"220 mail ESMTP\r\n", "mail or FTP"),
        (b"-ERR unknown command\r\n", "Redis"),
        (b"AMQP\x00\x00\x09\x01", "RabbitMQ"),
        (b"\x4a\x00\x00\x00\x0a8.0.30\x00", "MySQL"),
        (b"GET / HTTP/1.1\r\n", "HTTP request"),
    ],
)
def test_other_protocols_are_recognised_even_under_a_huge_limit(greeting: bytes, message: str) -> None:
    source, _ = reader(max_size=2**31 - 1)
    with pytest.raises(ProtocolViolation, match=message):
        source.feed(greeting)
