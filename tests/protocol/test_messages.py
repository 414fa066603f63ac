"""Every generated message in every version: round trips, and hostile bytes."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aiokwire.errors import ProtocolViolation, UnsupportedVersion
from aiokwire.protocol import ApiKey, Message, Request, request_type
from aiokwire.protocol.messages import (
    create_topics,
    describe_cluster,
    fetch,
    init_producer_id,
    join_group,
    list_offsets,
    metadata,
    produce,
)

from .samples import TopLevel, all_types, decode, encode, sample, versions_of

ALL = all_types()
every_type = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)


def samples(kind: type[TopLevel], seed: int, count: int) -> list[tuple[int, Message, bytes]]:
    """(version, message, its bytes), `count` of each version."""
    rng = random.Random(f"{kind.__name__} {seed}")
    found = []
    for version in versions_of(kind):
        for _ in range(count):
            message = sample(kind, rng, kind.VERSIONS, version)
            found.append((version, message, encode(message, kind.VERSIONS, version)))
    return found


@every_type
def test_written_data_is_read_back(kind: type[TopLevel]) -> None:
    for version, message, data in samples(kind, 1, 4):
        again = decode(kind, data, kind.VERSIONS, version)
        assert again == message
        assert encode(again, kind.VERSIONS, version) == data


@every_type
def test_a_message_of_defaults_is_read_as_defaults(kind: type[TopLevel]) -> None:
    for version in versions_of(kind):
        assert decode(kind, encode(kind(), kind.VERSIONS, version), kind.VERSIONS, version) == kind()


@every_type
def test_a_cut_message_is_a_violation_wherever_it_is_cut(kind: type[TopLevel]) -> None:
    for version, _, data in samples(kind, 2, 1):
        step = max(1, len(data) // 200)
        for size in range(0, len(data), step):
            with pytest.raises(ProtocolViolation):
                decode(kind, data[:size], kind.VERSIONS, version)


@every_type
def test_a_changed_message_is_read_or_a_violation(kind: type[TopLevel]) -> None:
    rng = random.Random(kind.__name__)
    for version, _, data in samples(kind, 3, 2):
        for _ in range(30 if data else 0):
            changed = bytearray(data)
            for _ in range(rng.randint(1, 3)):
                changed[rng.randrange(len(changed))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            check_read_or_violation(kind, version, bytes(changed))


def check_read_or_violation(kind: type[TopLevel], version: int, data: bytes) -> None:
    """Compare values: some have two encodings (a long varint, any byte for true)."""
    with contextlib.suppress(ProtocolViolation):
        message = decode(kind, data, kind.VERSIONS, version)
        again = decode(kind, encode(message, kind.VERSIONS, version), kind.VERSIONS, version)
        assert repr(again) == repr(message), "as text, for the sake of NaN"


@settings(max_examples=2000, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(kind=st.sampled_from(ALL), which=st.integers(min_value=0), data=st.binary(max_size=200))
def test_random_bytes_are_read_or_a_violation(kind: type[TopLevel], which: int, data: bytes) -> None:
    versions = versions_of(kind)
    version = versions[which % len(versions)]
    check_read_or_violation(kind, version, data)


def test_every_api_has_a_request_and_a_response_of_the_same_versions() -> None:
    for key in ApiKey:
        request = request_type(key)
        assert request.API is key
        assert request.RESPONSE.API is key
        assert request.RESPONSE.VERSIONS == request.VERSIONS
        assert request.SERVED_FROM is None or request.SERVED_FROM in request.VERSIONS


def test_dropped_versions_are_there_beside_the_newest() -> None:
    ranges: dict[type[Request], tuple[int, int, int]] = {
        produce.ProduceRequest: (0, 13, 3),
        fetch.FetchRequest: (0, 18, 4),
        list_offsets.ListOffsetsRequest: (0, 11, 1),
        create_topics.CreateTopicsRequest: (0, 7, 2),
        metadata.MetadataRequest: (0, 13, 0),
    }
    for kind, (low, high, served_from) in ranges.items():
        assert (kind.VERSIONS.min, kind.VERSIONS.max, kind.SERVED_FROM) == (low, high, served_from)


def test_a_version_that_may_still_change_is_marked() -> None:
    assert init_producer_id.InitProducerIdRequest.UNSTABLE_FROM == 6
    assert fetch.FetchRequest.UNSTABLE_FROM is None


def test_a_value_that_a_version_cannot_carry_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedVersion, match="ProduceRequest version 2 cannot carry transactional_id='t'"):
        encode(produce.ProduceRequest(transactional_id="t"), produce.ProduceRequest.VERSIONS, 2)
    with pytest.raises(UnsupportedVersion, match="MetadataRequest version 0 cannot carry topics=None"):
        encode(metadata.MetadataRequest(topics=None), metadata.MetadataRequest.VERSIONS, 0)
    request = describe_cluster.DescribeClusterRequest(endpoint_type=2)
    with pytest.raises(UnsupportedVersion, match="endpoint_type"):
        encode(request, request.VERSIONS, 0)
    partition = produce.PartitionProduceResponse(current_leader=produce.LeaderIdAndEpoch(leader_id=1))
    response = produce.ProduceResponse(responses=[produce.TopicProduceResponse(partition_responses=[partition])])
    with pytest.raises(UnsupportedVersion, match="current_leader"):
        encode(response, response.VERSIONS, 9)


def test_a_value_that_may_be_ignored_is_left_out_of_versions_without_it() -> None:
    request = join_group.JoinGroupRequest(group_id="g", reason="because")
    data = encode(request, request.VERSIONS, 7)
    assert decode(join_group.JoinGroupRequest, data, request.VERSIONS, 7) == join_group.JoinGroupRequest(group_id="g")


def test_lists_are_fresh_for_each_message() -> None:
    one, other = produce.ProduceRequest(), produce.ProduceRequest()
    one.topic_data.append(produce.TopicProduceData())
    assert other.topic_data == []


def test_messages_are_equal_by_value_and_show_it() -> None:
    data = produce.PartitionProduceData(index=3, records=bytes(100))
    assert data == produce.PartitionProduceData(index=3, records=memoryview(bytes(100)))
    assert data != produce.PartitionProduceData(index=4, records=bytes(100))
    assert data != object()
    assert repr(data) == "PartitionProduceData(index=3, records=<100 bytes>)"


def test_unknown_tags_survive_in_order_beside_known_ones() -> None:
    request = fetch.FetchRequest(cluster_id="c", unknown_tags=((7, b"seven"), (200, b"")))
    data = encode(request, request.VERSIONS, 12)
    assert decode(fetch.FetchRequest, data, request.VERSIONS, 12) == request


def test_records_are_a_view_of_the_frame() -> None:
    data = encode(produce.PartitionProduceData(records=b"r" * 50), produce.ProduceRequest.VERSIONS, 9)
    frame = bytearray(data)
    read = decode(produce.PartitionProduceData, frame, produce.ProduceRequest.VERSIONS, 9)
    assert isinstance(read, produce.PartitionProduceData)
    assert isinstance(read.records, memoryview)
    assert read.records.obj is frame
