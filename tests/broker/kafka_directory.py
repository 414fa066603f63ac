"""A data directory as in Kafka's KRaft mode, built record by record from the published schemas."""

from __future__ import annotations

from aiokwire.broker.log import Storage, encode_id
from aiokwire.protocol import CompactWriter
from aiokwire.records import BatchBuilder, assign_offsets

NOW = 1_700_000_000_000
LOG = "__cluster_metadata-0/00000000000000000000.log"


def _record(kind: int, version: int = 0) -> CompactWriter:
    out = CompactWriter()
    for one in (1, kind, version):  # varints below 128
        out.int8(one)
    return out


def topic(name: str, topic_id: bytes) -> bytes:
    out = _record(2)
    out.string(name)
    out.uuid(topic_id)
    out.tags(())
    return out.getvalue()


def partition(topic_id: bytes, index: int, epoch: int = 0) -> bytes:
    out = _record(3, 1)
    out.int32(index)
    out.uuid(topic_id)
    for replicas in ([1], [1], [], []):
        out.int32s(replicas)
    for number in (1, epoch, 0):
        out.int32(number)
    out.uuids([bytes(16)])
    out.tags(())
    return out.getvalue()


def new_leader(topic_id: bytes, index: int) -> bytes:
    out = _record(5)
    out.int32(index)
    out.uuid(topic_id)
    out.tags(((1, (1).to_bytes(4, "big")),))
    return out.getvalue()


def config(resource: int, name: str, key: str, value: str | None) -> bytes:
    out = _record(4)
    out.int8(resource)
    out.string(name)
    out.string(key)
    out.nullable_string(value)
    out.tags(())
    return out.getvalue()


def topic_config(name: str, key: str, value: str | None) -> bytes:
    return config(2, name, key, value)


def remove_topic(topic_id: bytes) -> bytes:
    out = _record(9)
    out.uuid(topic_id)
    out.tags(())
    return out.getvalue()


def producer_ids(following: int) -> bytes:
    out = _record(15)
    out.int32(1)
    out.int64(7)
    out.int64(following)
    out.tags(())
    return out.getvalue()


def begin_transaction() -> bytes:
    out = _record(23)
    out.tags(())
    return out.getvalue()


def end_transaction() -> bytes:
    out = _record(24)
    out.tags(())
    return out.getvalue()


def abort_transaction() -> bytes:
    out = _record(25)
    out.tags(())
    return out.getvalue()


def batch(records: list[bytes], base: int = 0, timestamp: int = NOW) -> bytearray:
    builder = BatchBuilder(2, 1 << 20)
    for record in records:
        builder.append(timestamp, None, record)
    data = bytearray(builder.seal())
    assign_offsets(data, base, 0)
    return data


def write_metadata(storage: Storage, records: list[bytes], path: str = LOG, *, base: int = 0) -> None:
    """Write a segment, or a snapshot, of the metadata log."""
    storage.make_directory("__cluster_metadata-0")
    storage.write(path, batch(records, base) if records else b"")


def write_partition(storage: Storage, name: str, topic_id: bytes, records: int = 1, timestamp: int = NOW) -> None:
    """Write a partition's directory; the name is that of the directory."""
    storage.make_directory(name)
    storage.write(f"{name}/partition.metadata", f"version: 0\ntopic_id: {encode_id(topic_id)}".encode())
    content = batch([b"v"] * records, timestamp=timestamp) if records else b""
    storage.write(f"{name}/00000000000000000000.log", content)
