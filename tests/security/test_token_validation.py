"""Validation of tokens by the broker: only what the issuer signed for this broker, now."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ConfigurationError
from aiokwire.security.jwt import encoded_bytes, public_key
from aiokwire.security.oauthbearer import OAuthBearerClient, OAuthBearerServer
from aiokwire.security.sasl import OAuthToken
from aiokwire.security.secret import Secret
from aiokwire.security.token_validation import JwksKeys, Key, TokenValidator
from tests.security.exchanges import await_now, exchange
from tests.security.provider import (
    EC384_KEY,
    EC_KEY,
    RSA_KEYS,
    Answer,
    IdentityProvider,
    ec_jwk,
    identity_provider,
    new_token,
    rsa_jwk,
)


class FixedKeys:
    """Keys without a provider."""

    def __init__(self, *jwks: dict[str, Any]) -> None:
        self._keys = [Key(jwk["kid"], jwk.get("alg", ""), public_key(jwk)) for jwk in jwks]  # type: ignore[arg-type]

    async def keys(self, key_id: str) -> list[Key]:
        return [key for key in self._keys if key.id == key_id or not key_id]


KEYS = FixedKeys(rsa_jwk(RSA_KEYS[0], "key-0"), ec_jwk(EC_KEY, "ec", "P-256"), ec_jwk(EC384_KEY, "ec384", "P-384"))


def claims(**more: Any) -> dict[str, Any]:
    now = wall_ms() // 1000
    usual = {"iss": "idp", "aud": "kafka", "sub": "alice", "scope": "read write", "iat": now, "exp": now + 600}
    return {name: value for name, value in (usual | more).items() if value is not None}


def validator(**options: Any) -> TokenValidator:
    return TokenValidator(KEYS, **{"issuer": "idp", "audience": ["kafka"]} | options)


async def validated(token: str, **options: Any) -> OAuthToken:
    return await validator(**options).validate(Secret(token))


@pytest.mark.parametrize(
    ("algorithm", "key", "kid"),
    [
        *[(name, RSA_KEYS[0], "key-0") for name in ("RS256", "RS384", "RS512", "PS256")],
        ("ES256", EC_KEY, "ec"),
        ("ES384", EC384_KEY, "ec384"),
    ],
)
async def test_a_signed_token_is_valid(algorithm: str, key: Any, kid: str) -> None:
    given = claims()
    token = await validated(new_token(given, algorithm=algorithm, key=key, kid=kid))
    assert (token.principal, token.expires_at) == ("alice", given["exp"])


async def test_the_claims_have_configurable_names() -> None:
    token = new_token(claims(sub=None, client="app", scope=None, scp=["read"], aud=["x", "kafka"]))
    found = await validated(token, principal_claim="client", scope_claim="scp", scope="read")
    assert found.principal == "app"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"exp": 1000}, "has expired"),
        ({"exp": None}, "no expiry"),
        ({"exp": "later"}, "no expiry"),
        ({"exp": True}, "no expiry"),
        ({"exp": 1e300}, "no expiry"),
        ({"nbf": 4e9}, "not valid yet .claim nbf"),
        ({"iat": 4e9}, "not valid yet .claim iat"),
        ({"iat": "x"}, "not valid yet .claim iat"),
        ({"iss": "other"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"aud": "other"}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"aud": {"kafka": 1}}, "another audience"),
        ({"scope": "write"}, "lacks the scope 'read'"),
        ({"scope": "readwrite"}, "lacks the scope 'read'"),
        ({"sub": None}, "no claim 'sub'"),
        ({"sub": ""}, "no claim 'sub'"),
        ({"sub": 5}, "no claim 'sub'"),
        ({"sub": "x" * 2000}, "no claim 'sub'"),
    ],
)
async def test_a_claim_that_does_not_fit_is_refused(more: dict[str, Any], text: str) -> None:
    with pytest.raises(AuthenticationFailed, match=text):
        await validated(new_token(claims(**more)), scope="read")


async def test_clocks_may_differ_by_the_skew() -> None:
    now = wall_ms() // 1000
    await validated(new_token(claims(exp=now - 10, nbf=now + 10, iat=now + 10)))
    with pytest.raises(AuthenticationFailed, match="has expired"):
        await validated(new_token(claims(exp=now - 10)), clock_skew=5)


def hs256(given: dict[str, Any], secret: bytes) -> str:
    text = ".".join(encoded_bytes(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": "key-0"}, given))
    return f"{text}.{encoded_bytes(hmac.digest(secret, text.encode(), 'sha256'))}"


async def test_unsigned_tokens_and_shared_secrets_are_refused() -> None:
    body = encoded_bytes(json.dumps(claims()).encode())
    for algorithm in ("none", "None", "", "HS256", None, 5, ["RS256"]):
        header = encoded_bytes(json.dumps({"alg": algorithm, "kid": "key-0"}).encode())
        with pytest.raises(AuthenticationFailed, match=r"algorithm|not a signed JWT"):
            await validated(f"{header}.{body}.AAAA")
    # The public key as the secret of HMAC.
    with pytest.raises(AuthenticationFailed, match="algorithm"):
        await validated(hs256(claims(), b"public key"))


async def test_a_key_verifies_only_its_own_algorithm() -> None:
    keys = FixedKeys(rsa_jwk(RSA_KEYS[0], "key-0", alg="PS256"))
    with pytest.raises(AuthenticationFailed, match="signature is wrong"):
        await TokenValidator(keys, issuer="idp").validate(Secret(new_token(claims())))
    for algorithm, kid in (("ES256", "key-0"), ("RS256", "ec"), ("ES256", "ec384")):
        header = encoded_bytes(json.dumps({"alg": algorithm, "kid": kid}).encode())
        body = encoded_bytes(json.dumps(claims()).encode())
        with pytest.raises(AuthenticationFailed, match="signature is wrong"):
            await validated(f"{header}.{body}.{encoded_bytes(bytes(64))}")


async def test_critical_headers_and_the_key_of_another_are_refused() -> None:
    with pytest.raises(AuthenticationFailed, match="critical"):
        await validated(new_token(claims(), crit=["b64"]))
    with pytest.raises(AuthenticationFailed, match="signature is wrong"):
        await validated(new_token(claims(), key=RSA_KEYS[1]))
    with pytest.raises(AuthenticationFailed, match="key id"):
        await validated(new_token(claims(), kid=5))  # type: ignore[arg-type]


TOKEN = new_token(claims(exp=4_000_000_000))


@given(place=st.integers(0, len(TOKEN) - 1), value=st.characters(exclude_categories=["Cs"], max_codepoint=255))
@settings(max_examples=200)
def test_every_changed_character_is_refused(place: int, value: str) -> None:
    changed = TOKEN[:place] + value + TOKEN[place + 1 :]
    if changed == TOKEN:
        return
    with pytest.raises(AuthenticationFailed):
        await_now(validated(changed))


@given(st.text(max_size=100) | st.from_regex(r"[A-Za-z0-9_-]{0,40}\.[A-Za-z0-9_-]{0,40}\.[A-Za-z0-9_-]{0,40}"))
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(AuthenticationFailed):
        await_now(validated(text))


async def test_a_token_that_is_too_long_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(AuthenticationFailed, match="not a signed JWT"):
        await validated("a" * 70_000 + ".b.c")


def test_an_issuer_or_an_audience_is_required() -> None:
    with pytest.raises(ConfigurationError, match=r"expected\.issuer or .*expected\.audience"):
        TokenValidator(KEYS)


def test_small_keys_and_keys_for_encryption_are_not_used() -> None:
    small = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    assert public_key(rsa_jwk(small, "small")) is None
    assert public_key(rsa_jwk(RSA_KEYS[0], "enc", use="enc")) is None
    for malformed in ({}, {"kty": "oct", "k": "AAAA"}, {"kty": "RSA", "n": "!"}, {"kty": "EC", "crv": "P-999"}):
        assert public_key(malformed) is None
    off_curve = ec_jwk(EC_KEY, "x", "P-256") | {"x": "AAAA"}
    assert public_key(off_curve) is None


# --- key sets ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as running:
        yield running


async def test_a_client_logs_in_with_a_token_of_the_provider(provider: IdentityProvider) -> None:
    checker = TokenValidator(JwksKeys(provider.url + "/jwks"), issuer=provider.url, audience="kafka")
    for _ in range(2):
        server = OAuthBearerServer(checker.validate)
        token = new_token(provider.claims("alice"))
        await exchange(OAuthBearerClient(OAuthToken(Secret(token), 4e9)), server)
        assert server.authorization_id == "alice"
    assert provider.count["/jwks"] == 1


async def test_a_new_signing_key_is_fetched_and_unknown_keys_do_not_flood_the_provider(
    provider: IdentityProvider,
) -> None:
    keys = JwksKeys(provider.url + "/jwks", refetch_seconds=0)
    checker = TokenValidator(keys, issuer=provider.url)
    await checker.validate(Secret(new_token(provider.claims("alice"))))
    provider.keys.append(rsa_jwk(RSA_KEYS[1], "key-1"))
    rotated = Secret(new_token(provider.claims("alice"), key=RSA_KEYS[1], kid="key-1"))
    assert (await checker.validate(rotated)).principal == "alice"
    assert provider.count["/jwks"] == 2
    patient = TokenValidator(JwksKeys(provider.url + "/jwks", refetch_seconds=1000), issuer=provider.url)
    for _ in range(5):
        with pytest.raises(AuthenticationFailed, match="its key is unknown"):
            await patient.validate(Secret(new_token(provider.claims("alice"), kid="unknown")))
    assert provider.count["/jwks"] == 3


async def test_a_token_without_a_key_id_is_tried_with_every_key(provider: IdentityProvider) -> None:
    provider.keys.insert(0, rsa_jwk(RSA_KEYS[1], "key-1"))
    checker = TokenValidator(JwksKeys(provider.url + "/jwks"), issuer=provider.url)
    assert (await checker.validate(Secret(new_token(provider.claims("bob"), kid="")))).principal == "bob"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(500, b""),
        Answer(404, b"{}"),
        Answer(200, b"no"),
        Answer(200, b'{"keys": 5}'),
        Answer(200, b'{"keys": [5]}'),
        Answer(200, b'{"keys": []}'),
    ],
)
async def test_keys_that_cannot_be_fetched_refuse_the_login_and_are_logged(
    provider: IdentityProvider, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    provider.answers = [answer]
    checker = TokenValidator(JwksKeys(provider.url + "/jwks"), issuer=provider.url)
    token = Secret(new_token(provider.claims("alice")))
    with pytest.raises(AuthenticationFailed, match="the broker cannot validate tokens now"):
        await checker.validate(token)
    assert "a client's OAuth token cannot be validated: http://127.0.0.1:" in caplog.text
    assert (await checker.validate(token)).principal == "alice"


async def test_known_keys_are_kept_while_the_provider_is_down(provider: IdentityProvider) -> None:
    checker = TokenValidator(JwksKeys(provider.url + "/jwks", refetch_seconds=0), issuer=provider.url)
    token = Secret(new_token(provider.claims("alice")))
    await checker.validate(token)
    provider.answers = [Answer(503, b"")]
    with pytest.raises(AuthenticationFailed, match="its key is unknown"):
        await checker.validate(Secret(new_token(provider.claims("alice"), kid="unknown")))
    assert (await checker.validate(token)).principal == "alice"


async def test_a_key_set_may_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [rsa_jwk(RSA_KEYS[0], "key-0")]}))
    checker = TokenValidator(JwksKeys(file.as_uri()), issuer="idp")
    assert (await checker.validate(Secret(new_token(claims())))).principal == "alice"
    with pytest.raises(ConfigurationError, match="https only"):
        JwksKeys("http://idp.example/jwks")
