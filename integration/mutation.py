"""Request frames for fuzzing: valid ones with known and random values, and malformed copies.

The mutations follow the format: flipped bytes, numbers that have broken parsers before, slices that
are repeated or missing, another version or API for the same body, cuts. Produce carries batches
whose records are corrupt under a valid checksum.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

from crc32c import crc32c

from aiokwire.broker.dispatch import APIS
from aiokwire.errors import KafkaError
from aiokwire.protocol import ZERO_UUID, ApiKey, Message, encode_request, request_type
from aiokwire.types import Compression
from tests.broker.raw import batch
from tests.protocol.samples import hints

BEFORE_LOGIN = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
_NAMES = (
    *("t", "u", "g", "h", "__consumer_offsets", "max.message.bytes", "retention.ms", "range", "uniform", "1", ""),
    *("PLAIN", "SCRAM-SHA-512", "x" * 249, "y" * 30_000, "ä€\U0001f600", "\x1b[31m\r\n", "(a+)+$", "*"),
)
_NUMBERS = (0, 0, 0, 1, 1, 2, 3, 4, -1, -2, 5, 100, 1000, 2**15, 2**31 - 1, -(2**31))
_TOKENS = (b"\0admin\0wrong", b"n,,n=admin,r=abc", b"n,,n=admin,r=" + b"a" * 5000, b"c=biws,r=abc,p=AAAA", b"\0" * 40)
# Fixed-width and varint lengths, counts and offsets.
_HOSTILE = (
    *(b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\xff\xff", b"\0" * 4, b"\xff\xff", b"\x7f\xff"),
    *(b"\x7f" + b"\xff" * 7, b"\x80" + b"\0" * 7, b"\xff" * 4 + b"\x0f", b"\xff" * 4 + b"\x7f", b"\x80" * 10),
)
_CRC_AT, _CRC_FROM = 17, 21  # in a batch of format 2


class Mutator:
    """Makes request frames, and mutates copies of them."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        codecs = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)
        values = ([b"a", b"b"], [b"x" * 500] * 20, [None])
        self._batches = [batch(one, compression=codec) for codec in codecs for one in values]
        self._batches += [batch([b"a", b"b"], magic=magic) for magic in (0, 1)]
        self._mutations: tuple[Callable[[bytearray], bytearray], ...] = (
            *(self._flipped, self._flipped, self._overwritten, self._overwritten),
            *(self._cut, self._doubled, self._shortened, self._readdressed),
        )

    def frames(self, count: int, apis: tuple[ApiKey, ...] = ()) -> list[bytes]:
        """Return valid frames of these APIs (default: all), without their size."""
        served = [api for api in sorted(APIS.values()) if not apis or api.key in apis]
        frames: list[bytes] = []
        while len(frames) < count:
            api = self._rng.choice(served)
            request = self._filled(request_type(api.key))
            version = self._rng.randint(api.served_from, api.last)
            with contextlib.suppress(KafkaError, OverflowError, TypeError):  # what this version cannot carry
                frames.append(b"".join(encode_request(request, version, 1, self._rng.choice(_NAMES[:-8])))[4:])
        return frames

    def mutated(self, frame: bytes) -> bytes:
        """Return the frame, more often than not with one or two mutations."""
        dice = self._rng.random()
        if dice < 0.4:
            return frame
        changed = self._rng.choice(self._mutations)(bytearray(frame))
        if dice > 0.85 and len(changed) >= 8:
            changed = self._rng.choice(self._mutations)(changed)
        return bytes(changed)

    def _flipped(self, frame: bytearray) -> bytearray:
        for _ in range(self._rng.choice((1, 1, 2, 8))):
            frame[self._rng.randrange(min(4, len(frame) - 1), len(frame))] = self._rng.randrange(256)
        return frame

    def _overwritten(self, frame: bytearray) -> bytearray:
        hostile = self._rng.choice(_HOSTILE)
        at = self._rng.randrange(min(8, len(frame) - 1), len(frame))
        frame[at : at + len(hostile)] = hostile
        return frame

    def _cut(self, frame: bytearray) -> bytearray:
        return frame[: self._rng.randrange(min(8, len(frame)), len(frame) + 1)]

    def _doubled(self, frame: bytearray) -> bytearray:
        at = self._rng.randrange(min(8, len(frame) - 1), len(frame))
        part = frame[at : at + self._rng.choice((1, 4, 16, 60))]
        return frame[:at] + part * self._rng.choice((1, 1, 2, 50)) + frame[at:]

    def _shortened(self, frame: bytearray) -> bytearray:
        at = self._rng.randrange(min(8, len(frame) - 1), len(frame))
        return frame[:at] + frame[at + self._rng.choice((1, 2, 4, 16)) :]

    def _readdressed(self, frame: bytearray) -> bytearray:
        """Send the body as another version, sometimes as another API."""
        api = APIS.get(int.from_bytes(frame[0:2], "big"))
        if api is None or self._rng.random() < 0.3:
            api = self._rng.choice(sorted(APIS.values()))
            frame[0:2] = int(api.key).to_bytes(2, "big")
        frame[2:4] = self._rng.randint(0, api.last + 1).to_bytes(2, "big")
        return frame

    def _filled(self, kind: type[Any]) -> Any:
        message = kind()
        for name, hint in hints(kind).items():
            setattr(message, name, self._value(name, hint, getattr(message, name)))
        return message

    def _value(self, name: str, hint: Any, default: Any) -> Any:
        text = str(hint)
        if getattr(hint, "__origin__", None) is list:
            element = hint.__args__[0]
            return [self._value(name, element, None) for _ in range(self._rng.choice((0, 1, 1, 2, 3)))]
        if isinstance(hint, type) and issubclass(hint, Message):
            return self._filled(hint)
        if hint is bool:
            return self._rng.random() < 0.5
        if hint is int:
            return self._rng.choice(_NUMBERS) if self._rng.random() < 0.6 or default is None else default
        if "str" in text:
            return self._rng.choice(_NAMES)
        if "bytes" in text:
            return ZERO_UUID if default == ZERO_UUID else self._content(name)
        return default

    def _content(self, name: str) -> bytes:
        if name == "records" and self._rng.random() < 0.8:
            return self._records()
        if name == "auth_bytes" and self._rng.random() < 0.8:
            return self._rng.choice(_TOKENS)
        return self._rng.randbytes(self._rng.choice((0, 16, 70)))

    def _records(self) -> bytes:
        """Return a batch, often corrupted, with a recomputed checksum."""
        records = bytearray(self._rng.choice(self._batches))
        if self._rng.random() < 0.6 and len(records) > _CRC_FROM:
            corrupt = self._rng.choice((self._flipped, self._overwritten))
            content = corrupt(records[_CRC_FROM:])[: len(records) - _CRC_FROM]
            records[_CRC_FROM:] = content
            records[_CRC_AT:_CRC_FROM] = crc32c(bytes(records[_CRC_FROM:])).to_bytes(4, "big")
        return bytes(records)
