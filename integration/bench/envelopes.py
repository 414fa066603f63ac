"""The time to encode and decode Produce and Fetch messages without their records.

    python -m integration.bench.envelopes

Prints microseconds for one topic with 10 partitions, and for each further partition: the best of
several runs.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable

from aiokwire.protocol import decode_request, decode_response, encode_request, encode_response
from aiokwire.protocol.messages import fetch, produce

FEW, MANY = 10, 110
RECORDS = bytes(4000)
REPEAT, SECONDS = 5, 0.05


def produce_request(partitions: int) -> produce.ProduceRequest:
    data = [produce.PartitionProduceData(index=index, records=RECORDS) for index in range(partitions)]
    topic = produce.TopicProduceData(name="topic", topic_id=bytes(16), partition_data=data)
    return produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def produce_response(partitions: int) -> produce.ProduceResponse:
    done = [produce.PartitionProduceResponse(index=index, base_offset=index) for index in range(partitions)]
    return produce.ProduceResponse(responses=[produce.TopicProduceResponse(name="topic", partition_responses=done)])


def fetch_request(partitions: int) -> fetch.FetchRequest:
    wanted = [
        fetch.FetchPartition(partition=index, fetch_offset=index, partition_max_bytes=1 << 20)
        for index in range(partitions)
    ]
    return fetch.FetchRequest(max_wait_ms=500, topics=[fetch.FetchTopic(topic_id=bytes(16), partitions=wanted)])


def fetch_response(partitions: int) -> fetch.FetchResponse:
    data = [
        fetch.PartitionData(partition_index=index, high_watermark=index, records=RECORDS) for index in range(partitions)
    ]
    return fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(topic_id=bytes(16), partitions=data)])


def cases(partitions: int) -> dict[str, Callable[[], object]]:
    """Return the measured calls by name."""
    asked, fetched = produce_request(partitions), fetch_request(partitions)
    done, got = produce_response(partitions), fetch_response(partitions)
    asked_frame = b"".join(encode_request(asked, 12, 1, "me"))[4:]
    fetched_frame = b"".join(encode_request(fetched, 17, 1, "me"))[4:]
    done_frame = b"".join(encode_response(done, 12, 1))[4:]
    got_frame = b"".join(encode_response(got, 17, 1))[4:]
    return {
        "produce request: build and encode": lambda: encode_request(produce_request(partitions), 12, 1, "me"),
        "produce request: encode": lambda: encode_request(asked, 12, 1, "me"),
        "produce request: decode": lambda: decode_request(asked_frame),
        "produce response: encode": lambda: encode_response(done, 12, 1),
        "produce response: decode": lambda: decode_response(done_frame, produce.ProduceResponse, 12),
        "fetch request: encode": lambda: encode_request(fetched, 17, 1, "me"),
        "fetch request: decode": lambda: decode_request(fetched_frame),
        "fetch response: encode": lambda: encode_response(got, 17, 1),
        "fetch response: decode": lambda: decode_response(got_frame, fetch.FetchResponse, 17),
    }


def microseconds(call: Callable[[], object]) -> float:
    timer = timeit.Timer(call)
    number = max(1, int(SECONDS / (timer.timeit(10) / 10)))
    return min(timer.repeat(REPEAT, number)) / number * 1e6


def main() -> None:
    few, many = cases(FEW), cases(MANY)
    print(f"{'':36}{FEW} partitions  each further")
    for name in few:
        first = microseconds(few[name])
        further = (microseconds(many[name]) - first) / (MANY - FEW)
        print(f"{name:36}{first:10.2f} us{further:11.2f} us")


if __name__ == "__main__":
    main()
