"""A Kerberos realm on loopback: MIT's KDC, installed or unpacked from Debian's packages.

`python -m integration.kafka.secure_kerberos` downloads the packages into build/krb5 and installs
the Python package gssapi; it needs no root. The machine's /etc/krb5.conf is not used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from integration.kafka.fetch import MissingPrerequisite

REALM = "AIOKWIRE.TEST"
_BUILD = Path(__file__).resolve().parents[2] / "build" / "krb5"
_SECONDS = 30.0
_LISTENING = 20.0  # seconds until the KDC responds, at most

_LIBRARIES = (
    *("libkadm5srv-mit12", "libkadm5clnt-mit12", "libkdb5-10", "libgssrpc4", "libverto1", "libverto-libev1"),
    *("libev4", "libkrb5-3", "libk5crypto3", "libkrb5support0", "libgssapi-krb5-2", "libkeyutils1", "libcom-err2"),
    "libss2",
)
_PACKAGES = ("krb5-kdc", "krb5-admin-server", *_LIBRARIES)
_HEADERS = ("libkrb5-dev", "krb5-multidev", "comerr-dev")  # to build the Python package gssapi

_CLIENT_CONF = """[libdefaults]
 default_realm = {realm}
 dns_lookup_realm = false
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
 ticket_lifetime = 10m
 renew_lifetime = 1h
 forwardable = true
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 localhost = {realm}
[dbmodules]
 db_module_dir = {plugins}
"""
_KDC_CONF = """[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {home}/principal
  key_stash_file = {home}/stash
  acl_file = {home}/kadm5.acl
  max_life = 10m
  max_renewable_life = 1h
  supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
 }}
[logging]
 kdc = FILE:{home}/kdc.log
"""


class Kerberos:
    """A KDC with principals for the broker and its clients, and their keytabs."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.home = Path(tempfile.mkdtemp(prefix="aiokwire-krb5-"))
        self._root = _root()
        self._kdc: subprocess.Popen[bytes] | None = None

    @property
    def config(self) -> Path:
        """The client's configuration: KRB5_CONFIG, or java.security.krb5.conf."""
        return self.home / "krb5.conf"

    def keytab(self, name: str) -> Path:
        """Return the keytab of "broker", or of a client."""
        return self.home / f"{name}.keytab"

    @property
    def cache(self) -> Path:
        """The ticket cache of clients that have no keytab, as of kinit: KRB5CCNAME."""
        return self.home / "ccache"

    def log_in(self, name: str) -> None:
        """Put a client's ticket into the cache, as kinit does."""
        import gssapi

        store: dict[bytes | str, bytes | str] = {
            "client_keytab": str(self.keytab(name)),
            "ccache": f"FILE:{self.cache}",
        }
        assert gssapi.Credentials(usage="initiate", store=store).lifetime > 0

    def start(self) -> None:
        """Create the realm and start its KDC.

        Raises: MissingPrerequisite: a tool failed.
        """
        self._write_configs()
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master-secret")
        services = ("kafka/localhost", "kafka/127.0.0.1")
        for principal in (*services, "alice", "bob"):
            self._administer(f"addprinc -randkey {principal}")
        self._administer(f"ktadd -k {self.keytab('broker')} {' '.join(services)}")
        for client in ("alice", "bob"):
            self._administer(f"ktadd -k {self.keytab(client)} {client}")
        with (self.home / "kdc.out").open("ab") as sink:
            command = [self._tool("krb5kdc"), "-n", "-r", REALM]
            self._kdc = subprocess.Popen(command, env=self._environment(), stdout=sink, stderr=subprocess.STDOUT)
        self._await()

    def close(self) -> None:
        """Stop the KDC and delete the realm."""
        if self._kdc is not None and self._kdc.poll() is None:
            self._kdc.kill()
            self._kdc.wait(_SECONDS)
        shutil.rmtree(self.home, ignore_errors=True)

    def _await(self) -> None:
        from integration.kafka.server import listens

        assert self._kdc is not None
        deadline = time.perf_counter() + _LISTENING
        while not listens("127.0.0.1", self.port):
            if self._kdc.poll() is not None or time.perf_counter() > deadline:
                raise MissingPrerequisite(f"a KDC: {(self.home / 'kdc.out').read_text()[-600:]}")
            time.sleep(0.05)

    def _write_configs(self) -> None:
        values = {
            "realm": REALM,
            "port": self.port,
            "home": self.home,
            "plugins": _plugins(self._root),
        }
        self.config.write_text(_CLIENT_CONF.format(**values))
        (self.home / "kdc.conf").write_text(_KDC_CONF.format(**values))

    def _environment(self) -> Mapping[str, str]:
        environment = {
            **os.environ,
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self.home / "kdc.conf"),
        }
        if self._root != Path("/"):
            environment["LD_LIBRARY_PATH"] = ":".join(map(str, _library_dirs(self._root)))
        return environment

    def _tool(self, name: str) -> str:
        return str(self._root / "usr" / "sbin" / name)

    def _administer(self, command: str) -> None:
        self._run("kadmin.local", "-r", REALM, "-q", command)

    def _run(self, tool: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._tool(tool), *arguments],
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode:
            raise MissingPrerequisite(f"{tool}: {(done.stdout + done.stderr)[-600:]}")


def _root() -> Path:
    """Return the directory whose usr/sbin has the KDC: the system's, or that of unpacked packages.

    Raises: MissingPrerequisite: neither has it.
    """
    for root in (Path("/"), _BUILD):
        if (root / "usr" / "sbin" / "krb5kdc").exists() and (root / "usr" / "sbin" / "kadmin.local").exists():
            return root
    raise MissingPrerequisite(
        "a KDC: install krb5-kdc and krb5-admin-server, or run `python -m integration.kafka.secure_kerberos` on Debian"
    )


def _library_dirs(root: Path) -> list[Path]:
    return sorted({path.parent for path in root.glob("**/lib/*/*.so*")})


def _plugins(root: Path) -> Path:
    """Return the directory of the KDC's database modules."""
    found = sorted((root / "usr" / "lib").glob("*/krb5/plugins/kdb"))
    if not found:
        raise MissingPrerequisite("the database module of the KDC (krb5-kdc)")
    return found[0]


# --- installation -----------------------------------------------------------------------------------------------------


def install() -> None:
    """Unpack the KDC into the checkout unless the system has it, and install gssapi.

    Raises: MissingPrerequisite: the machine has no apt-get, or a package could not be installed.
    """
    try:
        _root()
    except MissingPrerequisite:
        _unpack(_PACKAGES)
    try:
        import gssapi as _installed  # noqa: F401
    except ImportError:
        _install_gssapi()


def _unpack(packages: tuple[str, ...]) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise MissingPrerequisite("Debian's apt-get and dpkg-deb, which unpack a KDC without root")
    _BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        try:
            _checked(["apt-get", "download", "-q", *packages], directory)
        except MissingPrerequisite:  # its lists are missing or old
            _checked(["apt-get", "update", "-q"], directory)
            _checked(["apt-get", "download", "-q", *packages], directory)
        for package in sorted(Path(directory).glob("*.deb")):
            _checked(["dpkg-deb", "-x", str(package), str(_BUILD)], directory)


def _install_gssapi() -> None:
    command = [sys.executable, "-m", "pip", "install", "-q", "gssapi>=1.9"]
    if shutil.which("krb5-config"):
        _checked(command, ".")
        return
    if not (_BUILD / "usr" / "include").exists():
        _unpack((*_HEADERS, *_LIBRARIES))
    include = _BUILD / "usr" / "include"
    libraries = " ".join(f"-L{path}" for path in _library_dirs(_BUILD))
    _checked(
        command,
        ".",
        GSSAPI_COMPILER_ARGS=f"-I{include} -I{include}/mit-krb5 -DHAS_GSSAPI_EXT_H",
        GSSAPI_LINKER_ARGS=f"{libraries} -lgssapi_krb5 -lkrb5 -lk5crypto -lcom_err",
        GSSAPI_MAIN_LIB="libgssapi_krb5.so.2",
    )


def _checked(command: list[str], directory: str, **environment: str) -> None:
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        tail = " ".join((done.stdout + done.stderr).split())[-600:]
        raise MissingPrerequisite(f"{command[0]} {command[1]} ended with status {done.returncode}: {tail}")


def main() -> int:
    try:
        install()
    except MissingPrerequisite as missing:
        print(f"Kerberos: missing {missing}", file=sys.stderr)
        return 1
    print(f"Kerberos: the KDC of {_root()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
