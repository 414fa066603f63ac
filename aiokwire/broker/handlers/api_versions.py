"""ApiVersions: v0-4

The broker's APIs, with the versions of Kafka 4.3.1; those of KIP-714 if it receives metrics.

Version notes:
- an unknown version gets a response of version 0: UNSUPPORTED_VERSION and the list (KIP-511)
- v3: the client's software name and version, checked as Kafka does; features
- v4: features may start at version 0
"""

from __future__ import annotations

import re

from aiokwire.broker.dispatch import APIS, TELEMETRY_APIS, Call
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import api_versions as messages

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# Name, supported levels, level in force in Kafka 4.3, and the API that clients need to use it.
FEATURES = (
    ("kraft.version", 0, 1, 1, None),
    ("metadata.version", 7, 30, 30, None),
    ("transaction.version", 0, 2, 2, ApiKey.END_TXN),
    ("group.version", 0, 1, 1, ApiKey.CONSUMER_GROUP_HEARTBEAT),
    ("share.version", 0, 1, 1, ApiKey.SHARE_FETCH),
    ("streams.version", 0, 1, 1, ApiKey.STREAMS_GROUP_HEARTBEAT),
)


def handle(request: messages.ApiVersionsRequest, call: Call) -> messages.ApiVersionsResponse:
    """Respond at once."""
    if call.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return messages.ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    receiver = call.state.client_metrics
    if receiver is not None and call.version >= 3:
        receiver.note_software(call.connection_id, request.client_software_name, request.client_software_version)
    features = [row for row in FEATURES if row[4] is None or row[4] in APIS]
    return messages.ApiVersionsResponse(
        api_keys=_api_keys(with_telemetry=receiver is not None),
        supported_features=[
            # Clients of older versions fail at a lowest level of 0 (KAFKA-17011): such features start at 1.
            messages.SupportedFeatureKey(
                name=name, min_version=first if call.version >= 4 else max(first, 1), max_version=last
            )
            for name, first, last, _, _ in features
        ]
        if call.version >= 3
        else [],
        finalized_features_epoch=0 if call.version >= 3 else -1,
        finalized_features=[
            messages.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, _, _, level, _ in features
        ]
        if call.version >= 3
        else [],
    )


def unsupported_version() -> messages.ApiVersionsResponse:
    """Return the response to an unsupported version, to be sent as version 0."""
    return messages.ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_api_keys(with_telemetry=False)
    )


def _api_keys(*, with_telemetry: bool) -> list[messages.ApiVersion]:
    return [
        messages.ApiVersion(api_key=key, min_version=api.first, max_version=api.last)
        for key, api in sorted(APIS.items())
        if with_telemetry or api.key not in TELEMETRY_APIS
    ]
