"""The options of TLS and SASL that every client has, with Kafka's names in snake_case.

`SecurityConfig` is the base of `ClientConfig`. Other spellings (aiokafka's, librdkafka's, a JAAS
string) are converted at construction, so that the rest of the package reads one field for each
fact.
"""

from __future__ import annotations

import dataclasses
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from aiokwire.config import convert_text, last_security
from aiokwire.security.sasl import OAuthToken, SaslClient, UserPassword
from aiokwire.security.secret import Secret

if TYPE_CHECKING:
    from aiokwire.security.tls import TlsOptions

Password = str | Secret | Callable[[], str | Secret | Awaitable[str | Secret]]
Credentials = UserPassword | tuple[str, str | Secret]
CredentialsProvider = Callable[[], Credentials | Awaitable[Credentials]]
Token = str | Secret | OAuthToken | tuple[str | Secret, float]


class TokenSource(Protocol):
    """An object that returns OAuth tokens, as aiokafka's `AbstractTokenProvider`."""

    def token(self) -> Token | Awaitable[Token]:
        """Return a token."""
        ...


TokenProvider = Callable[[], Token | Awaitable[Token]] | TokenSource
SaslClientFactory = Callable[[str], SaslClient]


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class SecurityConfig:
    """Options of TLS and SASL. Secrets are accepted as text and kept as `Secret`.

    Raises: ConfigurationError: options contradict each other, or one is missing.
    """

    security_protocol: str = "PLAINTEXT"
    """How brokers are reached: "PLAINTEXT", "SSL" (TLS), "SASL_PLAINTEXT" (login without TLS) or "SASL_SSL" (login over
    TLS)."""
    ssl_context: ssl.SSLContext | None = None
    """Your own context; it replaces all other ssl options, and its `check_hostname` applies."""
    ssl_truststore_location: str | None = None
    """The file with the certificates of the authorities (CA) that sign the brokers' certificates: PEM, or PKCS12 with
    `ssl_truststore_type`. Without it the system's authorities are trusted."""
    ssl_cafile: str | None = None
    """Another name of `ssl_truststore_location`."""
    ssl_truststore_certificates: str | None = None
    """The same certificates as text in PEM, in place of a file."""
    ssl_truststore_type: str | None = None
    """"PEM" or "PKCS12"; None: by the content."""
    ssl_truststore_password: str | Secret | None = None
    """The password of a PKCS12 trust store."""
    ssl_certfile: str | None = None
    """The client's certificate with its chain, in PEM, for brokers that require one (mTLS)."""
    ssl_keyfile: str | None = None
    """The private key of `ssl_certfile`, in PEM; None: it is in the same file."""
    ssl_keystore_location: str | None = None
    """One file with the client's key and certificate chain: PEM or PKCS12."""
    ssl_keystore_certificate_chain: str | None = None
    """The client's certificate chain as text in PEM, in place of a file."""
    ssl_keystore_key: str | Secret | None = None
    """The client's private key as text in PEM (PKCS#8), in place of a file."""
    ssl_keystore_type: str | None = None
    """"PEM" or "PKCS12"; None: by the content."""
    ssl_keystore_password: str | Secret | None = None
    """The password of a PKCS12 key store."""
    ssl_key_password: str | Secret | Callable[[], str | Secret] | None = None
    """The password of an encrypted private key, or a plain function that returns it, called in a thread whenever the
    key is read."""
    ssl_endpoint_identification_algorithm: str = "https"
    """"https": a broker's certificate must name its host. "": it need not, which lets another server with a certificate
    of the same authority impersonate the broker."""
    ssl_check_hostname: bool | None = None
    """Another spelling of `ssl_endpoint_identification_algorithm`: True is "https", False is ""."""
    ssl_enabled_protocols: str | Sequence[str] | None = None
    """The versions of TLS: "TLSv1.2,TLSv1.3" or one of them. None: both."""
    ssl_cipher_suites: str | Sequence[str] | None = None
    """The cipher suites, by Java's or OpenSSL's names, separated by commas. None: OpenSSL's defaults."""
    ssl_crlfile: str | None = None
    """A file with certificate revocation lists in PEM; a broker's certificate that is in them is rejected."""
    sasl_mechanism: str | None = None
    """How the client logs in: "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI" (Kerberos) or
    "AWS_MSK_IAM"; any name with `sasl_client_factory`."""
    sasl_jaas_config: str | Secret | None = None
    """The credentials as the Java client has them, such as
    `org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";`. Converted to the
    other options; `${env:NAME}`, `${file:PATH:KEY}` and `${dir:PATH:FILE}` are replaced."""
    sasl_plain_username: str | None = None
    """The user of PLAIN and SCRAM."""
    sasl_username: str | None = None
    """Another name of `sasl_plain_username`."""
    sasl_plain_password: Password | None = None
    """The password of PLAIN and SCRAM, or a plain or async function that returns it, called at each login."""
    sasl_password: Password | None = None
    """Another name of `sasl_plain_password`."""
    sasl_credentials_provider: CredentialsProvider | None = None
    """A plain or async function that returns (user, password), called at each login, for passwords that change."""
    sasl_oauth_token_provider: TokenProvider | None = None
    """For OAUTHBEARER: a plain or async function, or an object with `token()`, that returns the token: a str,
    (str, seconds since the epoch at which it expires), or an `OAuthToken`."""
    sasl_oauthbearer_token_endpoint_url: str | None = None
    """For OAUTHBEARER: the address of the token endpoint of an OpenID provider; https, except for loopback."""
    sasl_oauthbearer_client_credentials_client_id: str | None = None
    """The client id for the token endpoint (grant "client_credentials")."""
    sasl_oauthbearer_client_credentials_client_secret: str | Secret | None = None
    """The client secret for the token endpoint."""
    sasl_oauthbearer_scope: str | None = None
    """The scope to request from the token endpoint."""
    sasl_oauthbearer_header_urlencode: bool = False
    """Whether the client id and secret are URL-encoded, as RFC 6749 specifies and some token endpoints require."""
    sasl_oauthbearer_grant: str = "client_credentials"
    """"client_credentials", or "jwt-bearer": a signed assertion in place of the client secret (KIP-1139)."""
    sasl_oauthbearer_assertion_file: str | None = None
    """A file with the assertion, read at each request for a token (a Kubernetes service account, for example)."""
    sasl_oauthbearer_assertion_private_key_file: str | None = None
    """The private key in PEM that signs assertions, in place of an assertion file."""
    sasl_oauthbearer_assertion_private_key_passphrase: str | Secret | None = None
    """The password of that key."""
    sasl_oauthbearer_assertion_template_file: str | None = None
    """A JSON file with the headers and claims that every assertion gets."""
    sasl_oauthbearer_assertion_algorithm: str = "RS256"
    """The algorithm of the signature: "RS256" or "ES256"."""
    sasl_oauthbearer_assertion_claim_iss: str | None = None
    """The issuer in the assertion."""
    sasl_oauthbearer_assertion_claim_sub: str | None = None
    """The subject in the assertion."""
    sasl_oauthbearer_assertion_claim_aud: str | None = None
    """The audience in the assertion."""
    sasl_oauthbearer_assertion_claim_exp_seconds: float = 300
    """How many seconds an assertion is valid."""
    sasl_oauthbearer_assertion_claim_nbf_seconds: float = 60
    """How many seconds before now an assertion becomes valid, to allow for clock skew."""
    sasl_oauthbearer_assertion_claim_jti_include: bool = False
    """Whether each assertion gets a unique identifier."""
    sasl_oauthbearer_extensions: str | Mapping[str, str] | tuple[tuple[str, str], ...] | None = None
    """SASL extensions (KIP-342) to send with the token: a dict, or "name=value,name=value"."""
    sasl_login_refresh_window_factor: float = 0.8
    """The part of a token's lifetime after which it is refreshed."""
    sasl_login_refresh_buffer_seconds: float = 300
    """A token is refreshed at least this many seconds before it expires."""
    sasl_login_refresh_min_period_seconds: float = 60
    """A token is used for at least this many seconds before it is refreshed."""
    sasl_login_connect_timeout_ms: float = 10_000
    """How long a connection to the token endpoint may take."""
    sasl_login_read_timeout_ms: float = 10_000
    """How long the token endpoint may take to respond."""
    sasl_login_retry_backoff_ms: float = 100
    """The pause before the first retry of a failed request for a token; it doubles."""
    sasl_login_retry_backoff_max_ms: float = 10_000
    """The longest pause between two requests for a token."""
    sasl_kerberos_service_name: str = "kafka"
    """For GSSAPI: the first part of the brokers' principal, as in kafka/broker.example@REALM."""
    sasl_kerberos_domain_name: str | None = None
    """For GSSAPI: the host in the brokers' principal; None: the broker's host."""
    sasl_kerberos_keytab: str | None = None
    """For GSSAPI: the file with the client's key. None: the ticket cache (kinit)."""
    sasl_kerberos_principal: str | None = None
    """For GSSAPI: the client's principal, user@REALM. None: the ticket cache's."""
    sasl_aws_region: str | None = None
    """For AWS_MSK_IAM: the region; None: from the broker's host or the environment."""
    sasl_aws_access_key_id: str | None = None
    """For AWS_MSK_IAM: the access key; None: the environment, the profile, the container or the instance has it."""
    sasl_aws_secret_access_key: str | Secret | None = None
    """For AWS_MSK_IAM: the secret of that key."""
    sasl_aws_session_token: str | Secret | None = None
    """For AWS_MSK_IAM: the session token of temporary credentials."""
    sasl_aws_profile: str | None = None
    """For AWS_MSK_IAM: the profile in the files of the AWS command line."""
    sasl_delegation_token: bool = False
    """For SCRAM: user and password are the id and the HMAC of a delegation token (KIP-48)."""
    sasl_client_factory: SaslClientFactory | None = None
    """Your own mechanism: a function that takes the broker's host and returns a `SaslClient` for one login."""

    def __post_init__(self) -> None:
        convert_text(self)
        # Loaded here: a client without security needs none of it.
        if self._is_configured():
            from aiokwire.security.consistency import check, normalized

            for name, value in normalized(self).items():
                object.__setattr__(self, name, value)
            check(self)

    def _is_configured(self) -> bool:
        return any(getattr(self, name) != default for name, default in DEFAULTS.items())

    @staticmethod
    def security_defaults() -> Mapping[str, Any]:
        """Return the options of TLS and SASL with their defaults."""
        return DEFAULTS

    def _warn_of_clear_text(self, hosts: Sequence[str]) -> None:
        from aiokwire.security.consistency import warn_of_clear_text

        warn_of_clear_text(self, hosts)

    def __repr__(self) -> str:
        """Return the options that differ from their defaults; secrets as ***."""
        shown = [
            f"{field.name}={_shown(field.name, getattr(self, field.name))}"
            for field in last_security(dataclasses.fields(self))
            if field.init and getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether connections log in."""
        return self.security_protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def tls(self) -> TlsOptions:
        """The options of TLS."""
        from aiokwire.security.tls import TlsOptions

        return TlsOptions.of(self)


def _shown(name: str, value: object) -> str:
    """The arguments of a `functools.partial` may be secrets, and certificates are long."""
    if name not in DEFAULTS:
        return repr(value)
    if isinstance(value, str) and len(value) > 100:
        return f"<{len(value)} characters>"
    return repr(value) if isinstance(value, (str, bool, int, float, tuple, Secret)) else f"<{type(value).__name__}>"


DEFAULTS: Mapping[str, Any] = {field.name: field.default for field in dataclasses.fields(SecurityConfig)}


class SecurityOptions(TypedDict, total=False):
    """Keyword options of TLS and SASL for type checkers (PEP 692); see `SecurityConfig`."""

    security_protocol: str
    ssl_context: ssl.SSLContext | None
    ssl_truststore_location: str | None
    ssl_cafile: str | None
    ssl_truststore_certificates: str | None
    ssl_truststore_type: str | None
    ssl_truststore_password: str | Secret | None
    ssl_certfile: str | None
    ssl_keyfile: str | None
    ssl_keystore_location: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | Secret | None
    ssl_keystore_type: str | None
    ssl_keystore_password: str | Secret | None
    ssl_key_password: str | Secret | Callable[[], str | Secret] | None
    ssl_endpoint_identification_algorithm: str
    ssl_check_hostname: bool | None
    ssl_enabled_protocols: str | Sequence[str] | None
    ssl_cipher_suites: str | Sequence[str] | None
    ssl_crlfile: str | None
    sasl_mechanism: str | None
    sasl_jaas_config: str | Secret | None
    sasl_plain_username: str | None
    sasl_username: str | None
    sasl_plain_password: Password | None
    sasl_password: Password | None
    sasl_credentials_provider: CredentialsProvider | None
    sasl_oauth_token_provider: TokenProvider | None
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | Secret | None
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_header_urlencode: bool
    sasl_oauthbearer_grant: str
    sasl_oauthbearer_assertion_file: str | None
    sasl_oauthbearer_assertion_private_key_file: str | None
    sasl_oauthbearer_assertion_private_key_passphrase: str | Secret | None
    sasl_oauthbearer_assertion_template_file: str | None
    sasl_oauthbearer_assertion_algorithm: str
    sasl_oauthbearer_assertion_claim_iss: str | None
    sasl_oauthbearer_assertion_claim_sub: str | None
    sasl_oauthbearer_assertion_claim_aud: str | None
    sasl_oauthbearer_assertion_claim_exp_seconds: float
    sasl_oauthbearer_assertion_claim_nbf_seconds: float
    sasl_oauthbearer_assertion_claim_jti_include: bool
    sasl_oauthbearer_extensions: str | Mapping[str, str] | tuple[tuple[str, str], ...] | None
    sasl_login_refresh_window_factor: float
    sasl_login_refresh_buffer_seconds: float
    sasl_login_refresh_min_period_seconds: float
    sasl_login_connect_timeout_ms: float
    sasl_login_read_timeout_ms: float
    sasl_login_retry_backoff_ms: float
    sasl_login_retry_backoff_max_ms: float
    sasl_kerberos_service_name: str
    sasl_kerberos_domain_name: str | None
    sasl_kerberos_keytab: str | None
    sasl_kerberos_principal: str | None
    sasl_aws_region: str | None
    sasl_aws_access_key_id: str | None
    sasl_aws_secret_access_key: str | Secret | None
    sasl_aws_session_token: str | Secret | None
    sasl_aws_profile: str | None
    sasl_delegation_token: bool
    sasl_client_factory: SaslClientFactory | None
