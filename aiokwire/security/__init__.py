"""TLS and SASL without sockets: options, contexts, mechanisms, credentials, secrets.

config       the options of clients             consistency   their aliases and checks
jaas         JAAS strings of the Java client    properties    its properties files
placeholders  ${env:}, ${file:}, ${dir:}         secret        a value that no text shows
sasl         the two sides of a SASL exchange   plain, scram, oauthbearer: mechanisms
login        a client's mechanism, credentials  credentials   shared and refreshed
jwt          JSON web tokens                    client        what connections share
tls          contexts of both sides
keystores    keys and certificates from files   certificates  an authority for development
tls_errors   what a failed handshake means      certificate_info, cipher_suites: names
tls_sessions  resumed by later connections
oidc         token endpoints                    http          small bounded requests
assertion    of the JWT bearer grant            gssapi        Kerberos
token_validation  access tokens at the broker   providers  of Azure, Google Cloud, AWS
aws_msk_iam  Amazon MSK's mechanism             aws_credentials  from the environment

Used by `aiokwire.net` and the clients above it, and by the embedded broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.security.client import ClientSecurity as ClientSecurity
    from aiokwire.security.certificate_info import (
        PeerCertificate as PeerCertificate,
        from_fields as from_fields,
        read_der as read_der,
    )
    from aiokwire.security.certificates import CertificateAuthority as CertificateAuthority, Issued as Issued
    from aiokwire.security.config import SecurityConfig as SecurityConfig, SecurityOptions as SecurityOptions
    from aiokwire.security.gssapi import GssapiServer as GssapiServer, require_gssapi as require_gssapi
    from aiokwire.security.jaas import parse_jaas as parse_jaas
    from aiokwire.security.jwt import unverified_claims as unverified_claims
    from aiokwire.security.login import Login as Login, new_login as new_login
    from aiokwire.security.oauthbearer import OAuthBearerServer as OAuthBearerServer
    from aiokwire.security.plain import PlainServer as PlainServer
    from aiokwire.security.placeholders import (
        read_text as read_text,
        resolve as resolve,
        warn_if_readable_by_others as warn_if_readable_by_others,
    )
    from aiokwire.security.properties import parse_properties as parse_properties
    from aiokwire.security.providers import (
        AwsMskTokens as AwsMskTokens,
        AzureTokens as AzureTokens,
        GoogleTokens as GoogleTokens,
    )
    from aiokwire.security.sasl import (
        OAuthToken as OAuthToken,
        SaslClient as SaslClient,
        SaslServer as SaslServer,
        UserPassword as UserPassword,
    )
    from aiokwire.security.scram import (
        ScramCredential as ScramCredential,
        ScramServer as ScramServer,
        credential_of as credential_of,
        derive_salted_password as derive_salted_password,
        is_password_of as is_password_of,
        salted_password as salted_password,
        scram_credential as scram_credential,
    )
    from aiokwire.security.secret import (
        HIDDEN as HIDDEN,
        Secret as Secret,
        SecretBytes as SecretBytes,
        random_bytes as random_bytes,
        random_text as random_text,
    )
    from aiokwire.security.tls import (
        ClientAuth as ClientAuth,
        ClientTls as ClientTls,
        ServerTls as ServerTls,
        TlsOptions as TlsOptions,
    )
    from aiokwire.security.tls_errors import explain_tls_error as explain_tls_error, is_final as is_final
    from aiokwire.security.tls_sessions import TlsSessions as TlsSessions
    from aiokwire.security.token_validation import JwksKeys as JwksKeys, TokenValidator as TokenValidator
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "security.client": "ClientSecurity",
            "security.certificate_info": "PeerCertificate from_fields read_der",
            "security.certificates": "CertificateAuthority Issued",
            "security.config": "SecurityConfig SecurityOptions",
            "security.gssapi": "GssapiServer require_gssapi",
            "security.jaas": "parse_jaas",
            "security.jwt": "unverified_claims",
            "security.login": "Login new_login",
            "security.oauthbearer": "OAuthBearerServer",
            "security.plain": "PlainServer",
            "security.placeholders": "read_text resolve warn_if_readable_by_others",
            "security.properties": "parse_properties",
            "security.providers": "AwsMskTokens AzureTokens GoogleTokens",
            "security.sasl": "OAuthToken SaslClient SaslServer UserPassword",
            "security.scram": "ScramCredential ScramServer credential_of derive_salted_password is_password_of "
            "salted_password scram_credential",
            "security.secret": "HIDDEN Secret SecretBytes random_bytes random_text",
            "security.tls": "ClientAuth ClientTls ServerTls TlsOptions",
            "security.tls_errors": "explain_tls_error is_final",
            "security.tls_sessions": "TlsSessions",
            "security.token_validation": "JwksKeys TokenValidator",
        },
    )
