"""Requests and responses of real brokers: decoded completely, and encoded to the same bytes again.

`integration/golden/capture.py` wrote the files: a directory per release, frames without their size.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from aiokwire.protocol import (
    ApiKey,
    Request,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    request_type,
)

from .peer import request_and_response_types
from .test_peers import assert_same

GOLDEN = Path(__file__).with_name("golden")
RELEASES = ("4.3.1", "0.10.2.2", "0.8.2.2")
REQUEST_TYPES: dict[str, type[Request]] = {
    kind.__name__.removesuffix("Request"): kind for kind in map(request_type, ApiKey)
}
EXCHANGES = sorted(
    (release, *path.name.removesuffix("_request.hex").rsplit("_v", 1))
    for release in RELEASES
    for path in (GOLDEN / release).glob("*_request.hex")
)
every_exchange = pytest.mark.parametrize(
    ("release", "api", "version"),
    [(release, api, int(version)) for release, api, version in EXCHANGES],
    ids=[f"{release}-{api}-v{version}" for release, api, version in EXCHANGES],
)
# Kafka serves these only with a plugin that takes the metrics.
ABSENT = {"GetTelemetrySubscriptions", "PushTelemetry"}
PEERS = request_and_response_types()


def golden(release: str, api: str, version: int, what: str) -> bytes:
    return bytes.fromhex((GOLDEN / release / f"{api}_v{version}_{what}.hex").read_text())


@every_exchange
def test_a_request_that_a_broker_accepted(release: str, api: str, version: int) -> None:
    frame = golden(release, api, version, "request")
    header, request = decode_request(frame)
    assert (header.api_key, header.api_version) == (REQUEST_TYPES[api].API, version)
    again = encode_request(request, version, header.correlation_id, header.client_id, header.unknown_tags)
    assert b"".join(again)[4:] == frame


@every_exchange
def test_a_response_of_a_broker(release: str, api: str, version: int) -> None:
    frame = golden(release, api, version, "response")
    response = decode_response(frame, REQUEST_TYPES[api].RESPONSE, version)
    assert b"".join(encode_response(response, version, int.from_bytes(frame[:4], "big")))[4:] == frame
    peer = PEERS.get(type(response).__name__)
    if peer is not None and peer.valid_versions[0] <= version <= peer.max_version:
        assert_same(response, peer.decode(frame, version=version, header=True))


def test_every_version_that_a_current_kafka_serves_was_captured() -> None:
    captured = {(api, int(version)) for release, api, version in EXCHANGES if release == "4.3.1"}
    for api, kind in REQUEST_TYPES.items():
        if kind.SERVED_FROM is not None and "broker" in kind.LISTENERS and api not in ABSENT:
            stop = kind.VERSIONS.max if kind.UNSTABLE_FROM is None else kind.UNSTABLE_FROM - 1
            missing = [number for number in range(kind.SERVED_FROM, stop + 1) if (api, number) not in captured]
            assert not missing, f"{api}: {missing}"


def test_the_old_message_formats_were_captured() -> None:
    captured = {(release, api, version) for release, api, version in EXCHANGES}
    for api in ("Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch"):
        assert ("0.8.2.2", api, "0") in captured
    for version in ("0", "1", "2"):
        assert ("0.10.2.2", "Produce", version) in captured
