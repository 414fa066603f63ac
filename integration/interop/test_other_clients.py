"""Our client and other Python clients read each other's records, on both brokers."""

from __future__ import annotations

import pytest

from integration.conftest import BrokerUnderTest
from integration.interop.peers import OTHERS, OURS, Message, Peer, sample

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def carried(producer: Peer, consumer: Peer, broker: BrokerUnderTest, codec: str) -> None:
    sent = sample()
    topic = broker.create("interop")
    producer.produce(broker.bootstrap_servers, topic, 1, sent, codec)
    got = consumer.consume(broker.bootstrap_servers, topic, 1, len(sent))
    assert [_short(message) for message in got] == [_short(message) for message in sent]
    assert got == sent


def _short(message: Message) -> Message:
    """Shorten a message, so that a difference is readable."""
    return Message(message.key, message.value and message.value[:80], message.headers, message.timestamp)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("peer", OTHERS, ids=str)
def test_other_clients_read_our_records(modern_broker: BrokerUnderTest, peer: Peer, codec: str) -> None:
    carried(OURS, peer, modern_broker, codec)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("peer", OTHERS, ids=str)
def test_we_read_the_records_of_other_clients(modern_broker: BrokerUnderTest, peer: Peer, codec: str) -> None:
    carried(peer, OURS, modern_broker, codec)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("producer", OTHERS, ids=str)
def test_other_clients_exchange_records_on_the_embedded_broker(
    embedded: BrokerUnderTest, producer: Peer, codec: str
) -> None:
    for consumer in OTHERS:
        carried(producer, consumer, embedded, codec)
