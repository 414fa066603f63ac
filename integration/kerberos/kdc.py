"""A Kerberos realm on loopback; its files are in one directory, /etc/krb5.conf is not used.

Needs the Debian packages krb5-kdc, krb5-admin-server and krb5-user.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from integration.kafka import MissingPrerequisite
from integration.kafka.server import ServerFailed, free_port

REALM = "AIOKWIRE.TEST"
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_START_SECONDS = 20.0

_CLIENT_CONFIG = """[libdefaults]
 default_realm = {realm}
 dns_lookup_realm = false
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
 ticket_lifetime = 10m
 kdc_timeout = 2000
 max_retries = 1
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 localhost = {realm}
"""
_SERVER_CONFIG = """[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
  max_life = 10m
  supported_enctypes = aes256-cts-hmac-sha1-96:normal
 }}
[logging]
 kdc = FILE:{directory}/kdc.log
"""


class Kdc:
    """A running key distribution center with some principals and their keytabs."""

    def __init__(self, directory: Path) -> None:
        """Raises: MissingPrerequisite: a program of MIT Kerberos is not installed."""
        missing = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
        if missing:
            raise MissingPrerequisite(
                f"{', '.join(missing)} of MIT Kerberos: apt-get install krb5-kdc krb5-admin-server krb5-user"
            )
        self.directory = directory
        self.port = free_port()
        self.config = directory / "krb5.conf"
        self.environment = {
            "PATH": _PATH,
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{directory}/ccache",
        }

    def create(self) -> None:
        """Create the realm: brokers kafka/localhost and other/localhost, users alice and bob."""
        values = {"realm": REALM, "port": self.port, "directory": self.directory}
        self.config.write_text(_CLIENT_CONFIG.format(**values))
        (self.directory / "kdc.conf").write_text(_SERVER_CONFIG.format(**values))
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master-secret")
        for name in ("kafka/localhost", "other/localhost", "alice", "bob"):
            self.admin(f"addprinc -randkey {name}")
        for name in ("kafka/localhost", "other/localhost", "alice", "bob"):
            self.keytab(name)

    def keytab(self, name: str) -> Path:
        """Return the keytab of a principal; its key stays the same."""
        path = self.directory / f"{name.replace('/', '-')}.keytab"
        if not path.exists():
            self.admin(f"ktadd -norandkey -k {path} {name}")
        return path

    def admin(self, query: str) -> None:
        """Run a command of kadmin.local."""
        self.run("kadmin.local", "-r", REALM, "-q", query)

    def log_in(self, name: str, *options: str) -> None:
        """Put a ticket into the cache, by kinit."""
        self.run("kinit", *options, "-k", "-t", str(self.keytab(name)), name)

    def run(self, *command: str) -> None:
        """Raises: ServerFailed: the program failed."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise ServerFailed(f"{command[0]}: {done.stdout}{done.stderr}")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve within the block."""
        command = ["krb5kdc", "-n", "-r", REALM]
        with subprocess.Popen(
            command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as it:
            try:
                self._wait(it)
                yield
            finally:
                it.terminate()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + _START_SECONDS  # noqa: TID251 - of another process
        while time.monotonic() < end and process.poll() is None:  # noqa: TID251
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise ServerFailed("krb5kdc does not listen: see kdc.log in its directory")
