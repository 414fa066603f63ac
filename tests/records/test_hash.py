"""murmur2 as Java computes it; xxh32 as in the samples of its specification."""

from __future__ import annotations

import pytest

from aiokwire.records import murmur2
from aiokwire.records._hash import xxh32


# from Kafka's own tests of its partitioner
@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_javas(key: bytes, wanted: int) -> None:
    assert murmur2(key) == wanted
    assert murmur2(bytearray(key)) == wanted
    assert murmur2(memoryview(b"x" + key)[1:]) == wanted


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"abcdefghijklmnopqrstuvwxyz", 0x63A14D5F),
    ],
)
def test_xxh32_is_the_specifications(data: bytes, wanted: int) -> None:
    assert xxh32(data) == wanted
