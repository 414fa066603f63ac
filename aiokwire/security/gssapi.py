"""GSSAPI (RFC 4752): Kerberos, by the package `gssapi` (extra `gssapi`), which needs libkrb5.

Only the login is protected ("auth"): Kafka does not use the security layers; use SASL_SSL. Each
step may ask the key distribution center (KDC) or read files, so it runs in a thread.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from aiokwire.errors import AuthenticationFailed, ConfigurationError, ConnectionFailed
from aiokwire.threads import run_in_thread

if TYPE_CHECKING:
    import gssapi

MECHANISM: Final = "GSSAPI"
NO_LAYER: Final = 1  # of the security layers: authentication only
MAX_MESSAGE: Final = 65_536
INSTALL: Final = (
    "sasl_mechanism='GSSAPI' needs the package gssapi: pip install 'aiokwire[gssapi]' (Debian: libkrb5-dev)"
)

# Parts of the texts of MIT Kerberos and Heimdal, and what to do; the first one that fits.
_ADVICE: Final = (
    (
        r"cannot contact any kdc|cannot find kdc|cannot resolve",
        "no KDC can be reached: check the realm and its kdc in /etc/krb5.conf (or KRB5_CONFIG)",
    ),
    (
        r"server \S* ?not found",
        "the realm has no such service principal: check sasl_kerberos_service_name and the broker's host name, or "
        "set sasl_kerberos_domain_name",
    ),
    (
        r"clock skew|not yet valid",
        "the clocks of this host, the KDC and the broker differ by more than 5 minutes: synchronize them (NTP)",
    ),
    (r"expired", "the ticket has expired: run kinit, or set sasl_kerberos_keytab, which renews it"),
    (r"client \S* ?not found", "the realm has no such client principal: check sasl_kerberos_principal"),
    (
        r"keytab|key table",
        "the keytab cannot be used: check its path, its permissions, and with `klist -k` that it has the principal",
    ),
    (
        r"wrong principal|decrypt integrity|key version",
        "the keys of the keytab are not the KDC's: create the keytab again",
    ),
    (
        r"no credentials|no kerberos credentials|credentials? cache|ccache|can't find client principal",
        "no ticket: run kinit, or set sasl_kerberos_keytab and sasl_kerberos_principal",
    ),
)
# The general part of the package's texts, if a cause follows.
_MAJOR: Final = re.compile(r"^Major \(\d+\): .*?, Minor \(\d+\): (?=\w)")
_TRANSIENT: Final = re.compile(r"cannot contact any kdc|cannot resolve network", re.IGNORECASE)


class KerberosOptions(NamedTuple):
    """The options `sasl_kerberos_*` of a client."""

    service_name: str = "kafka"
    domain_name: str = ""  # of the broker's principal; empty: the broker's host
    keytab: str = ""  # empty: the ticket cache
    principal: str = ""  # empty: the ticket cache's


def require_gssapi() -> None:
    """Raises: ConfigurationError: the package is not installed, or libkrb5 is missing."""
    try:
        import gssapi  # noqa: F401
    except (ImportError, OSError) as error:
        raise ConfigurationError(f"{INSTALL}: {error}") from error


def explain(error: Exception) -> AuthenticationFailed | ConnectionFailed:
    """Return the error for an exception of the package, with the cause and the remedy."""
    text = _MAJOR.sub("", " ".join(str(error).split()))
    advice = next((advice for pattern, advice in _ADVICE if re.search(pattern, text, re.IGNORECASE)), "")
    message = f"Kerberos: {text}" + (f": {advice}" if advice else "")
    if _TRANSIENT.search(text):
        return ConnectionFailed(message, stage="sasl")
    return AuthenticationFailed(message)


async def _in_thread(step: Callable[[], bytes]) -> bytes:
    from gssapi.raw.misc import GSSError

    try:
        return await run_in_thread(step)
    except GSSError as error:
        raise explain(error) from error
    except ValueError as error:  # of the package, for names and stores that it cannot use
        raise AuthenticationFailed(f"Kerberos: {error}") from error


# --- the client -------------------------------------------------------------------------------------------------------


class GssapiClient:
    """The client's side of one exchange with the broker at `host`."""

    mechanism: Final = MECHANISM

    def __init__(self, host: str, options: KerberosOptions) -> None:
        self._target = f"{options.service_name}@{options.domain_name or host}"
        self._options = options
        self._context: gssapi.SecurityContext | None = None
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        """Whether the last message was returned; the broker responds with success or an error."""
        return self._is_complete

    async def evaluate_challenge(self, challenge: bytes) -> bytes:
        """Return the next token of the context, then the choice of the security layer.

        Raises:
            AuthenticationFailed: no ticket, an unknown broker, wrong clocks or keys.
            ConnectionFailed: no KDC can be reached.
        """
        if self._is_complete:
            raise AuthenticationFailed("GSSAPI: the broker sent a message after the end of the exchange")
        if len(challenge) > MAX_MESSAGE:
            raise AuthenticationFailed(f"GSSAPI: a message has {len(challenge)} bytes, more than {MAX_MESSAGE}")
        return await _in_thread(lambda: self._step(challenge))

    def _step(self, challenge: bytes) -> bytes:
        if self._context is None:
            self._context = self._new_context()
        if not self._context.complete:
            return self._context.step(challenge or None) or b""
        return self._choose_layer(self._context, challenge)

    def _new_context(self) -> gssapi.SecurityContext:
        import gssapi

        name = gssapi.Name(self._target, gssapi.NameType.hostbased_service)
        flags = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.out_of_sequence_detection
        return gssapi.SecurityContext(
            name=name, creds=self._credentials(), flags=flags, mech=gssapi.MechType.kerberos, usage="initiate"
        )

    def _credentials(self) -> gssapi.Credentials | None:
        """Return the keytab's or the principal's credentials, None for the ticket cache's."""
        import gssapi

        options = self._options
        name = gssapi.Name(options.principal, gssapi.NameType.kerberos_principal) if options.principal else None
        if not options.keytab:
            return gssapi.Credentials(name=name, usage="initiate") if name is not None else None
        if not os.access(options.keytab.removeprefix("FILE:"), os.R_OK):
            raise AuthenticationFailed(
                f"sasl_kerberos_keytab {options.keytab!r} cannot be read: check its path and permissions"
            )
        # Tickets stay in memory, those of each user apart: the cache of kinit is neither used nor changed.
        user = hashlib.sha256(f"{options.keytab}\0{options.principal}".encode()).hexdigest()
        store: dict[bytes | str, bytes | str] = {"client_keytab": options.keytab, "ccache": f"MEMORY:aiokwire-{user}"}
        return gssapi.Credentials(name=name, usage="initiate", store=store)

    def _choose_layer(self, context: gssapi.SecurityContext, challenge: bytes) -> bytes:
        """Respond to the offered security layers: none, and no authorization id."""
        offer = context.unwrap(challenge).message
        if len(offer) != 4 or not offer[0] & NO_LAYER:
            raise AuthenticationFailed("GSSAPI: the broker requires a security layer, which Kafka does not use")
        self._is_complete = True
        wrapped: bytes = context.wrap(bytes([NO_LAYER, 0, 0, 0]), False).message
        return wrapped


# --- the server -------------------------------------------------------------------------------------------------------


class GssapiServer:
    """The server's side of one exchange, with the keys of a keytab.

    The user is the first part of the client's principal: "alice" of alice/host@REALM, as Kafka's
    default of `sasl.kerberos.principal.to.local.rules`.
    """

    mechanism: Final = MECHANISM

    def __init__(self, keytab: str, *, service_name: str = "kafka") -> None:
        self._keytab = keytab
        self._service_name = service_name
        self._context: gssapi.SecurityContext | None = None
        self._is_offered = False
        self._principal = ""
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        return self._is_complete

    @property
    def authorization_id(self) -> str:
        return re.split("[/@]", self._principal)[0] if self._is_complete else ""

    @property
    def principal(self) -> str:
        """The client's whole principal, such as alice@EXAMPLE.COM."""
        return self._principal if self._is_complete else ""

    @property
    def expires_at(self) -> float:
        return math.inf

    async def evaluate_response(self, response: bytes) -> bytes:
        """Return the next token, the offer of security layers, then b"".

        Raises: AuthenticationFailed: the ticket is malformed, or not for this broker.
        """
        if self._is_complete or len(response) > MAX_MESSAGE:
            raise AuthenticationFailed("GSSAPI: a message that is too long, or after the end of the exchange")
        return await _in_thread(lambda: self._step(response))

    def _step(self, response: bytes) -> bytes:
        if self._context is None:
            self._context = self._new_context()
        if not self._context.complete:
            if not response:
                raise AuthenticationFailed("GSSAPI: an empty message in place of a ticket")
            token = self._context.step(response)
            if token or not self._context.complete:
                return token or b""
            return self._offer(self._context)
        if not self._is_offered:
            return self._offer(self._context)
        return self._accept(self._context, response)

    def _new_context(self) -> gssapi.SecurityContext:
        import gssapi

        credentials = gssapi.Credentials(usage="accept", store={"keytab": self._keytab})
        return gssapi.SecurityContext(creds=credentials, usage="accept")

    def _offer(self, context: gssapi.SecurityContext) -> bytes:
        self._is_offered = True
        wrapped: bytes = context.wrap(bytes([NO_LAYER, 0, 0, 0]), False).message
        return wrapped

    def _accept(self, context: gssapi.SecurityContext, response: bytes) -> bytes:
        choice = context.unwrap(response).message
        if len(choice) < 4 or choice[0] != NO_LAYER:
            raise AuthenticationFailed("GSSAPI: the client chose a security layer that was not offered")
        # The authorization id behind it is not used, as in Kafka: kafka-python and aiokafka send the broker's name.
        self._principal = str(context.initiator_name)
        self._is_complete = True
        return b""
