"""Text files of a data directory: checkpoints, meta.properties, partition.metadata, clean mark."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterable, Mapping

from aiokwire.types import TopicPartition

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


def pack_checkpoint(lines: Iterable[str]) -> bytes:
    """Return the content of a checkpoint file: version, number of entries, entries."""
    entries = list(lines)
    return "\n".join(["0", str(len(entries)), *entries, ""]).encode()


def unpack_checkpoint(content: bytes | None, *, fields: int) -> list[list[str]]:
    """Return a checkpoint file's entries, split in `fields`; none if it is missing or corrupt."""
    try:
        version, count, *lines = (content or b"").decode().splitlines()
        entries = [line.split() for line in lines]
        sound = version == "0" and int(count) == len(entries)
    except ValueError:
        return []
    return entries if sound and all(len(entry) == fields for entry in entries) else []


def pack_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Return a checkpoint of one offset per partition."""
    return pack_checkpoint(f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))


def unpack_offsets(content: bytes | None) -> dict[TopicPartition, int]:
    """Return the offsets of a checkpoint; none if it is missing or corrupt."""
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partition, offset in unpack_checkpoint(content, fields=3)
        }
    except ValueError:
        return {}


def pack_properties(properties: Mapping[str, str]) -> bytes:
    """Return the content of a file of `key=value` lines."""
    return "".join(f"{key}={value}\n" for key, value in properties.items()).encode()


def unpack_properties(content: bytes | None) -> dict[str, str]:
    """Return the settings of a properties file, without comments and empty lines."""
    lines = (content or b"").decode(errors="replace").splitlines()
    pairs = (line.partition("=") for line in lines if not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs if key.strip()}


def pack_partition_metadata(topic_id: bytes) -> bytes:
    """Return the content of partition.metadata."""
    return f"version: 0\ntopic_id: {encode_id(topic_id)}".encode()


def unpack_partition_metadata(content: bytes | None) -> bytes | None:
    """Return the topic id, None if the file is missing or corrupt."""
    for line in (content or b"").decode(errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key == "topic_id":
            return decode_id(value.strip())
    return None


def pack_clean_shutdown() -> bytes:
    """Return the content of the file that marks a clean stop."""
    return json.dumps({"version": 0, "brokerEpoch": -1}).encode()


def encode_id(raw: bytes) -> str:
    """Return a 16-byte id in the 22 characters that Kafka writes."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_id(text: str) -> bytes | None:
    """Return the 16 bytes of an id, None if the text is not one."""
    try:
        raw = base64.urlsafe_b64decode(text + "==")
    except ValueError:
        return None
    return raw if len(raw) == 16 else None


def new_id(rng: random.Random) -> bytes:
    """Return a random id (a version 4 UUID) that does not start with a dash, as an option would."""
    while True:
        raw = bytearray(rng.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        if not encode_id(bytes(raw)).startswith("-"):
            return bytes(raw)
