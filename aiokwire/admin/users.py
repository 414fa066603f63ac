"""Users with SCRAM credentials (KIP-554). Values and messages for `Admin`.

The password is salted and hashed here: a broker neither receives nor stores it, or anything else
that would allow a login.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Sequence
from typing import Final

from aiokwire.admin.calls import with_message
from aiokwire.admin.results import Results
from aiokwire.errors import InvalidArgument, error_for
from aiokwire.protocol.messages import alter_user_scram_credentials, describe_user_scram_credentials
from aiokwire.security import Secret, derive_salted_password, random_bytes

DEFAULT_ITERATIONS: Final = 4096
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384  # the most that brokers accept
_SALT: Final = 24  # bytes


class ScramMechanism(enum.IntEnum):
    """The mechanisms of SCRAM; the values are those on the wire."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        """The name for `sasl_mechanism`."""
        return self.name.replace("_", "-")

    @classmethod
    def of(cls, code: int) -> ScramMechanism:
        return cls(code) if code in cls._value2member_map_ else cls.UNKNOWN


@dataclasses.dataclass(frozen=True, slots=True)
class ScramCredentialInfo:
    """A mechanism with which a user can log in."""

    mechanism: ScramMechanism
    iterations: int


@dataclasses.dataclass(frozen=True, slots=True)
class ScramCredentialUpsertion:
    """Creates a user's credential, or replaces it.

    `iterations`: 4096 to 16384; `salt`: random if it is empty.
    """

    user: str
    password: str | Secret
    mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_512
    iterations: int = DEFAULT_ITERATIONS
    salt: bytes = b""

    def __post_init__(self) -> None:
        _check_user(self.user, self.mechanism)
        object.__setattr__(self, "password", Secret(self.password))
        if not self.password:
            raise InvalidArgument(f"the password of user {self.user!r} must not be empty")
        if not MIN_ITERATIONS <= self.iterations <= MAX_ITERATIONS:
            raise InvalidArgument(
                f"user {self.user!r}: iterations must be from {MIN_ITERATIONS} to {MAX_ITERATIONS}, "
                f"not {self.iterations}"
            )


@dataclasses.dataclass(frozen=True, slots=True)
class ScramCredentialDeletion:
    """Deletes a user's credential of one mechanism."""

    user: str
    mechanism: ScramMechanism

    def __post_init__(self) -> None:
        _check_user(self.user, self.mechanism)


ScramAlteration = ScramCredentialUpsertion | ScramCredentialDeletion


def _check_user(user: str, mechanism: ScramMechanism) -> None:
    if not isinstance(user, str) or not user:
        raise InvalidArgument(f"a user name must be a non-empty str, not {user!r}")
    if not isinstance(mechanism, ScramMechanism) or mechanism is ScramMechanism.UNKNOWN:
        raise InvalidArgument(f"user {user!r}: mechanism must be a ScramMechanism, not {mechanism!r}")


def rounds(alterations: Iterable[ScramAlteration]) -> list[list[ScramAlteration]]:
    """Split alterations into requests: brokers refuse two for one user in the same request."""
    found: list[list[ScramAlteration]] = []
    times: dict[str, int] = {}
    for one in alterations:
        number = times[one.user] = times.get(one.user, -1) + 1
        if number == len(found):
            found.append([])
        found[number].append(one)
    return found


async def alter_request(
    alterations: Iterable[ScramAlteration],
) -> alter_user_scram_credentials.AlterUserScramCredentialsRequest:
    """Build the request; hashes the passwords."""
    request = alter_user_scram_credentials.AlterUserScramCredentialsRequest()
    for one in alterations:
        if isinstance(one, ScramCredentialDeletion):
            request.deletions.append(
                alter_user_scram_credentials.ScramCredentialDeletion(name=one.user, mechanism=int(one.mechanism))
            )
        else:
            request.upsertions.append(await _upsertion(one))
    return request


async def _upsertion(one: ScramCredentialUpsertion) -> alter_user_scram_credentials.ScramCredentialUpsertion:
    salt = one.salt or random_bytes(_SALT)
    salted = await derive_salted_password(one.mechanism.mechanism_name, Secret(one.password), salt, one.iterations)
    return alter_user_scram_credentials.ScramCredentialUpsertion(
        name=one.user, mechanism=int(one.mechanism), iterations=one.iterations, salt=salt, salted_password=salted
    )


def read_altered(response: alter_user_scram_credentials.AlterUserScramCredentialsResponse) -> Results[str, None]:
    results: Results[str, None] = Results({}, {})
    for one in response.results:
        if one.error_code:
            context = with_message(f"cannot alter the credentials of user {one.user!r}", one.error_message)
            results.errors[one.user] = error_for(one.error_code, context)
        else:
            results.succeeded[one.user] = None
    return results


def describe_request(
    users: Sequence[str] | None,
) -> describe_user_scram_credentials.DescribeUserScramCredentialsRequest:
    """Build the request; `users` None: for all users."""
    wanted = None if users is None else [describe_user_scram_credentials.UserName(name=name) for name in users]
    return describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=wanted)


def read_described(
    response: describe_user_scram_credentials.DescribeUserScramCredentialsResponse,
) -> Results[str, tuple[ScramCredentialInfo, ...]]:
    """Raises: BrokerError: the broker refuses the request as a whole."""
    if response.error_code:
        raise error_for(response.error_code, with_message("cannot describe the users", response.error_message))
    results: Results[str, tuple[ScramCredentialInfo, ...]] = Results({}, {})
    for one in sorted(response.results, key=lambda one: one.user):
        if one.error_code:
            context = with_message(f"cannot describe user {one.user!r}", one.error_message)
            results.errors[one.user] = error_for(one.error_code, context)
        else:
            infos = [ScramCredentialInfo(ScramMechanism.of(i.mechanism), i.iterations) for i in one.credential_infos]
            results.succeeded[one.user] = tuple(sorted(infos, key=lambda info: info.mechanism))
    return results
