"""The handshake of a connection: a sequence of exchanges, ApiVersions first.

`Connection` drives it. Each later exchange (SASL is one) is an `Exchange` that is handed in; TLS
precedes the handshake, with the transport.

A peer that hangs up on a request of `PLANS` gets the next, older one on a new socket: brokers
before 0.10 close the connection at the unknown api key, some peers reset it at a new version.
Nothing is remembered: each connection starts with the newest, so no broker stays at old versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ProtocolViolation, UnsupportedVersion, error_for
from aiokwire.net.wire import Wire
from aiokwire.protocol import ApiKey, Request, decode_response
from aiokwire.protocol.messages import api_versions, list_offsets

SOFTWARE_NAME: Final = "aiokwire"


class Offered(NamedTuple):
    """The versions of one API that a broker offers."""

    min: int
    max: int


# The versions of Kafka 0.8.2, which has no ApiVersions; newer brokers always respond to it.
_BEFORE_API_VERSIONS: Final[dict[int, Offered]] = {
    ApiKey.PRODUCE: Offered(0, 0),
    ApiKey.FETCH: Offered(0, 0),
    ApiKey.LIST_OFFSETS: Offered(0, 0),
    ApiKey.METADATA: Offered(0, 0),
    ApiKey.OFFSET_COMMIT: Offered(0, 1),
    ApiKey.OFFSET_FETCH: Offered(0, 1),
    ApiKey.FIND_COORDINATOR: Offered(0, 0),
    ApiKey.JOIN_GROUP: Offered(0, 0),
    ApiKey.HEARTBEAT: Offered(0, 0),
    ApiKey.LEAVE_GROUP: Offered(0, 0),
    ApiKey.SYNC_GROUP: Offered(0, 0),
    ApiKey.DESCRIBE_GROUPS: Offered(0, 0),
    ApiKey.LIST_GROUPS: Offered(0, 0),
}


class ApiVersions:
    """The versions that one broker offers, and the choice of a version for each request."""

    __slots__ = ("_picked", "assumed", "finalized_features", "offered", "who")

    def __init__(
        self,
        offered: Mapping[int, Offered],
        *,
        who: str,
        assumed: bool = False,
        finalized_features: Mapping[str, int] | None = None,
    ) -> None:
        self.offered: dict[int, Offered] = dict(offered)
        self.who: str = who
        self.assumed: bool = assumed  # the broker is too old for ApiVersions
        # Name to the highest level in force (KIP-584).
        self.finalized_features: dict[str, int] = dict(finalized_features or {})
        self._picked: dict[type[Request], int] = {}

    def range(self, api_key: int) -> Offered | None:
        """Return the versions of an API that the broker offers; None if the API is unknown."""
        return self.offered.get(api_key)

    def pick(self, request_type: type[Request], max_version: int | None = None) -> int:
        """Return the newest version that both sides know, up to `max_version`.

        Raises: UnsupportedVersion: they share none.
        """
        if max_version is None:
            picked = self._picked.get(request_type)
            if picked is None:
                picked = self._picked[request_type] = self._choose(request_type, None)
            return picked
        return self._choose(request_type, max_version)

    def _choose(self, request_type: type[Request], max_version: int | None) -> int:
        ours = request_type.VERSIONS
        newest = ours.max if request_type.UNSTABLE_FROM is None else request_type.UNSTABLE_FROM - 1
        if max_version is not None:
            newest = min(newest, max_version)
        theirs = self.offered.get(request_type.API)
        name = request_type.__name__
        if theirs is None:
            old = ": it answers no ApiVersions, so it is older than 0.10" if self.assumed else ""
            raise UnsupportedVersion(f"{self.who} does not support {name}{old}", request=name)
        version = min(newest, theirs.max)
        if version < max(ours.min, theirs.min):
            raise UnsupportedVersion(
                f"{self.who} supports versions {theirs.min} to {theirs.max} of {name}, this client "
                f"{ours.min} to {newest}",
                request=name,
            )
        return version

    def __repr__(self) -> str:
        return f"<ApiVersions of {self.who}, {len(self.offered)} APIs{', assumed' if self.assumed else ''}>"


class Plan(NamedTuple):
    """One way to learn the versions. `version` None: do not ask, assume the oldest."""

    request: type[Request]
    version: int | None

    def __str__(self) -> str:
        return f"{self.request.__name__} v{0 if self.version is None else self.version}"


NEWEST: Final = Plan(api_versions.ApiVersionsRequest, api_versions.ApiVersionsRequest.VERSIONS.max)
OLDEST: Final = Plan(api_versions.ApiVersionsRequest, 0)
# The last one is for a broker before 0.10, and is not tried where a broker has responded to ApiVersions before.
PLANS: Final[Sequence[Plan]] = (NEWEST, OLDEST, Plan(list_offsets.ListOffsetsRequest, None))


MOST_APIS: Final = 5000  # and features, in an ApiVersions response: it is decoded on the event loop


class Exchange(Protocol):
    """A later step of the handshake, such as SASL, on the open wire."""

    name: str

    async def run(self, wire: Wire, versions: ApiVersions, timeout: float) -> None:
        """Run the exchange; an exception ends the connection."""


async def learn_versions(
    wire: Wire, plan: Plan, *, who: str, timeout: float, software_name: str, software_version: str
) -> ApiVersions:
    """Ask the broker for its versions, by one plan.

    Raises: ConnectionFailed: the peer hung up; ProtocolViolation: it does not speak Kafka's
    protocol; BrokerError: it refuses.
    """
    if plan.version is None:
        # An empty request without effects, to which 0.8 responds at once: a port that accepts connections but speaks
        # something else (or a proxy without a broker behind it) is not mistaken for an old broker.
        await wire.send(list_offsets.ListOffsetsRequest(), 0, timeout=timeout)
        return ApiVersions(_BEFORE_API_VERSIONS, who=who, assumed=True)
    version = plan.version
    while True:
        request = api_versions.ApiVersionsRequest()
        if version >= 3:
            request.client_software_name = software_name
            request.client_software_version = software_version
        frame = await wire.send(request, version, timeout=timeout, raw=True)
        code = _error_code(frame)
        refused = code == ErrorCode.UNSUPPORTED_VERSION
        # KIP-511: a broker that does not know the version responds with version 0 and lists those it knows.
        answer = decode_response(
            frame, api_versions.ApiVersionsResponse, 0 if refused else version, max_elements=MOST_APIS
        )
        if not refused:
            if code:
                raise error_for(code, f"ApiVersions v{version} to {who}", request="ApiVersionsRequest")
            return _from_answer(answer, who)
        version = _older(answer, version, who)


def _from_answer(answer: api_versions.ApiVersionsResponse, who: str) -> ApiVersions:
    return ApiVersions(
        {entry.api_key: Offered(entry.min_version, entry.max_version) for entry in answer.api_keys},
        who=who,
        finalized_features={feature.name: feature.max_version_level for feature in answer.finalized_features},
    )


def _error_code(frame: bytearray) -> int:
    if len(frame) < 6:
        raise ProtocolViolation(f"an ApiVersions response of {len(frame)} bytes is too short for an error code")
    return int.from_bytes(frame[4:6], "big", signed=True)


def _older(answer: api_versions.ApiVersionsResponse, refused: int, who: str) -> int:
    known = next((entry.max_version for entry in answer.api_keys if entry.api_key == ApiKey.API_VERSIONS), 0)
    if refused <= 0:
        raise UnsupportedVersion(f"{who} refuses ApiVersions v0", request="ApiVersionsRequest")
    return max(0, min(known, refused - 1))
