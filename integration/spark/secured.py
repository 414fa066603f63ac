"""A user of a secure broker for a Spark job, and the search for its password afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio

from aiokwire import Admin, AuthenticationFailed
from aiokwire.admin import (
    AclBinding,
    AclOperation,
    AclResourceType,
    DelegationToken,
    PatternType,
    ScramCredentialUpsertion,
)
from integration.kafka.secure import Access, password
from integration.kafka.secure_files import PASSWORD
from integration.spark.cluster import CONF
from integration.spark.driver import PATIENCE, Driver
from integration.spark.secured_job import ROWS, SERVERS, Options

PARTITIONS: Final = 2
TOPICS: Final = ("rows", "batch", "stream", "once", "loud")
FILES: Final = ("ca.pem", "trust.p12", "alice.store.pem")
"""Files of clients, which travel to the executors by `spark.files`."""
JOBS: Final = (
    "batch source",
    "stream source",
    "batch sink",
    "exactly-once batch sink",
    "stream sink",
    "exactly-once stream sink",
    "archive",
)
MOST_SECONDS: Final = 60
"""Of a job with a wrong password, on a busy machine."""
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
_RIGHTS: Final = (
    (AclResourceType.TOPIC, AclOperation.READ),
    (AclResourceType.TOPIC, AclOperation.WRITE),
    (AclResourceType.GROUP, AclOperation.READ),
    (AclResourceType.TRANSACTIONAL_ID, AclOperation.WRITE),
)
_LOOK: Final = 0.1
# Parts of paths that have what the test put there, or the packages of the environment.
_NOT_SEARCHED: Final = ("private", "site-packages")


class User(NamedTuple):
    """A user with the rights that the documentation names, on a prefix."""

    name: str
    password: str
    prefix: str
    token: tuple[str, str]
    """The id and the HMAC of a delegation token."""

    def login(self, secret: str = "") -> Options:
        """Return the options of a login by SCRAM over TLS; files are relative."""
        return _scram(self.name, secret or self.password)

    @property
    def wrong(self) -> str:
        """A password that is not the user's."""
        return f"not-{self.password}"


def _scram(name: str, secret: str, *options: str) -> Options:
    parts = [_SCRAM, f'username="{name}"', f'password="{secret}"', *options]
    return {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.truststore.location": "ca.pem",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": " ".join(parts) + ";",
    }


async def create_user(access: Access) -> User:
    """Create a user with a random password, its topics and rights."""
    number = uuid.uuid4().hex
    name, prefix, secret = f"spark-{number[:8]}", f"job-{number[:8]}.", f"pw{number}"
    principal = f"User:{name}"
    async with Admin(**access.options("SASL_SSL", "SCRAM-SHA-512")) as admin:
        for topic in TOPICS:
            await admin.create_topic(prefix + topic, PARTITIONS, replication_factor=1)
        (await admin.alter_user_scram_credentials([ScramCredentialUpsertion(name, secret)])).check()
        bindings = [AclBinding(principal, right, kind, prefix, PatternType.PREFIXED) for kind, right in _RIGHTS]
        (await admin.create_acls(bindings)).check()
    own: dict[str, Any] = {"sasl_plain_username": name, "sasl_plain_password": secret}
    token = await _create_token({**access.options("SASL_SSL", "SCRAM-SHA-512"), **own})
    return User(name, secret, prefix, (token.token_id, token.password.reveal()))


async def _create_token(options: dict[str, Any]) -> DelegationToken:
    """Create a token as soon as the user's password has reached the broker's metadata."""
    with anyio.fail_after(PATIENCE):
        while True:
            try:
                async with Admin(**options) as admin:
                    return await admin.create_delegation_token()
            except AuthenticationFailed:
                await anyio.sleep(_LOOK)


def logins(access: Access, user: User) -> dict[str, Options]:
    """Return other ways to log in, by name."""
    secured = {SERVERS: access.address("SASL_SSL")}
    text = {name: value for name, value in user.login().items() if "truststore" not in name}
    oauth = f'{_OAUTH} clientId="alice" clientSecret="{password("alice")}" scope="kafka";'
    token_id, hmac = user.token
    return {
        "PKCS12": secured
        | user.login()
        | {"kafka.ssl.truststore.location": "trust.p12", "kafka.ssl.truststore.password": PASSWORD.reveal()},
        "PEM as text": secured | text | {"kafka.ssl.truststore.certificates": access.certificates.text("ca.pem")},
        "client certificate": {
            SERVERS: access.address("SSL"),
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.location": "ca.pem",
            "kafka.ssl.keystore.location": "alice.store.pem",
        },
        "delegation token": secured | _scram(token_id, hmac, 'tokenauth="true"'),
        "OAUTHBEARER": secured
        | {
            "kafka.security.protocol": "SASL_SSL",
            "kafka.ssl.truststore.location": "ca.pem",
            "kafka.sasl.mechanism": "OAUTHBEARER",
            "kafka.sasl.jaas.config": oauth,
            "kafka.sasl.oauthbearer.token.endpoint.url": access.oidc.token_url,
        },
    }


def prepare(folder: Path, access: Access, user: User, conf: Options) -> Path:
    """Write the work of a job and the files of its clients; return the path of the work."""
    for name in FILES:
        shutil.copy(access.certificates.path(name), folder)
    for name in ("events", "private"):
        (folder / name).mkdir()
    secured = {SERVERS: access.address("SASL_SSL")}
    events = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
    events["spark.eventLog.dir"] = (folder / "events").as_uri()
    settings = CONF | events | {"spark.ui.enabled": "true", "spark.ui.port": "0"} | conf
    work = {
        "conf": {name: value for name, value in settings.items() if value},
        "folder": str(folder),
        "prefix": user.prefix,
        "good": secured | user.login(),
        "wrong": secured | user.login(user.wrong),
        "logins": logins(access, user),
    }
    path = folder / "private" / "work.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps(work))
    return path


def check(found: Mapping[str, Any], access: Access, user: User) -> None:
    """Check the rows of each step, and the errors of the jobs with a wrong password."""
    for name in ("read", "stream", "once", "archived", "sql", *logins(access, user)):
        assert found[name] == ROWS, name
    assert found["run"] == {"loud": ROWS}
    for name in JOBS:
        seconds, error = found[f"refused {name}"]
        assert error.count("AuthenticationFailed") == 1 or name == "archive", error
        assert "the login by SCRAM-SHA-512 failed" in error
        assert "Traceback" not in error
        assert user.password not in error
        assert seconds < MOST_SECONDS, f"{name} failed after {seconds} s"


def check_traces(driver: Driver, folder: Path, user: User) -> None:
    """Search the files of the job while Spark runs, let it end, and search what is left."""
    driver.wait_for("done")
    shown = {path.relative_to(folder).parts[0] for path in files_with(folder, [user.prefix])}
    assert {"driver.out", "events", "ui"} <= shown, "the search finds what the job wrote"
    assert files_with(folder, secrets(user)) == []
    (folder / "stop").touch()
    driver.process.wait(PATIENCE)
    assert files_with(folder, secrets(user)) == []


def secrets(user: User) -> list[str]:
    """Return what no trace of a job may show."""
    return [user.password, user.token[1], PASSWORD.reveal(), password("alice")]


class Watch:
    """Samples the command lines and environments of the processes of sessions (`ps e`)."""

    def __init__(self, sessions: Iterable[int]) -> None:
        self.seen: set[bytes] = set()
        self._sessions = set(sessions)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def check(self, user: User) -> None:
        """Check that processes were seen, and none of them with a password."""
        assert any(b"java" in each for each in self.seen)
        assert any(b"pyspark" in each for each in self.seen)
        assert not [each for each in self.seen if any(secret.encode() in each for secret in secrets(user))]

    def _run(self) -> None:
        while not self._ended.wait(_LOOK):
            self.seen.update(_command_lines(self._sessions))


def _command_lines(sessions: set[int]) -> Iterator[bytes]:
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getsid(int(entry.name)) in sessions:
                yield (entry / "cmdline").read_bytes() + b"\0" + (entry / "environ").read_bytes()


def files_with(folder: Path, texts: Iterable[str]) -> list[Path]:
    """Return the files that contain one of the texts."""
    wanted = [text.encode() for text in texts]
    return [path for path in sorted(folder.rglob("*")) if _is_searched(path) and _contains(path, wanted)]


def _is_searched(path: Path) -> bool:
    return path.is_file() and not set(path.parts) & set(_NOT_SEARCHED)


def _contains(path: Path, wanted: Iterable[bytes]) -> bool:
    try:
        content = path.read_bytes()
    except FileNotFoundError:  # Spark has removed it
        return False
    return any(each in content for each in wanted)
