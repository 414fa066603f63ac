"""Messages within bytes fields."""

from __future__ import annotations

import pytest

from aiokwire.errors import ProtocolViolation, UnsupportedVersion
from aiokwire.protocol import decode_embedded, encode_embedded
from aiokwire.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from aiokwire.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition

from .peer import peer

PeerSubscription = peer("kafka.protocol.consumer.metadata").ConsumerProtocolSubscription


def test_a_subscription_is_read_in_the_version_it_was_written_in() -> None:
    owned = [TopicPartition(topic="a", partitions=[0, 2])]
    subscription = ConsumerProtocolSubscription(topics=["a", "b"], user_data=b"x", owned_partitions=owned, rack_id="r")
    assert decode_embedded(encode_embedded(subscription, 3), ConsumerProtocolSubscription) == subscription
    older = decode_embedded(encode_embedded(subscription, 0), ConsumerProtocolSubscription)
    assert older == ConsumerProtocolSubscription(topics=["a", "b"], user_data=b"x")


def test_a_subscription_of_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    subscription = ConsumerProtocolSubscription(topics=["a"])
    newer = b"\0\x09" + encode_embedded(subscription, 3)[2:] + b"what came later"
    assert decode_embedded(newer, ConsumerProtocolSubscription) == subscription


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_kafka_python_writes_the_same_bytes(version: int) -> None:
    ours = encode_embedded(ConsumerProtocolSubscription(topics=["a", "b"], user_data=b"x"), version)
    assert PeerSubscription(topics=["a", "b"], user_data=b"x").encode(version=version) == ours


def test_bytes_of_another_kind_are_a_violation() -> None:
    for content in (b"", b"\0", b"\xff\xff", b"\0\0\0\0", encode_embedded(ConsumerProtocolAssignment(), 0) + b"x"):
        with pytest.raises(ProtocolViolation):
            decode_embedded(content, ConsumerProtocolAssignment)
    with pytest.raises(UnsupportedVersion):
        encode_embedded(ConsumerProtocolAssignment(), 4)
