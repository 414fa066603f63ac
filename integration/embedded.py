"""The embedded broker in its own process, `aiokwire broker`, so that tests can kill it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from integration.kafka.server import KafkaServer, RealKafka, ServerFailed, free_port

_STOP_SECONDS = 20.0


class EmbeddedProcess:
    """`aiokwire broker` with its own data directory and the interface of `KafkaServer`."""

    version = "embedded"

    def __init__(
        self, data_dir: Path | None = None, *, settings: Mapping[str, object] | None = None, secure: bool = False
    ) -> None:
        """`secure`: with `--secure`, clients need `client_options`."""
        self.port = free_port()
        self._secure = secure
        self._given = data_dir
        self._home: Path | None = None
        self._settings = settings or {}
        self._process: subprocess.Popen[str] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def data_dir(self) -> Path:
        """Its data directory."""
        if self._given is not None:
            return self._given
        if self._home is None:
            self._home = Path(tempfile.mkdtemp(prefix="aiokwire-broker-"))
        return self._home

    @property
    def client_options(self) -> dict[str, Any]:
        """The options of clients; of the admin user if the broker is secure."""
        options: dict[str, Any] = {"bootstrap_servers": self.bootstrap_servers}
        if not self._secure:
            return options
        files = self.data_dir / "security"
        return options | {
            "security_protocol": "SASL_SSL",
            "ssl_cafile": str(files / "ca.pem"),
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "admin",
            "sasl_plain_password": (files / "admin-password").read_text().strip(),
        }

    def files_of(self, topic: str) -> list[Path]:
        """Return the files of a topic's partitions that Kafka's DumpLogSegments can check."""
        suffixes = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
        return sorted(path for path in self.data_dir.glob(f"{topic}-*/*") if path.suffix in suffixes)

    @property
    def pid(self) -> int:
        """The broker's process id."""
        if self._process is None:
            raise ServerFailed("the embedded broker was not started")
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it reports that it is listening.

        Raises:
            ServerFailed: it ended before.
        """
        command = [sys.executable, "-m", "aiokwire", "broker", "--listen", self.bootstrap_servers]
        command += ["--data-dir", str(self.data_dir)]
        if self._secure:
            command.append("--secure")
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        errors = (self.data_dir.parent / f"{self.data_dir.name}.stderr").open("a+")
        with errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
            if "listening on " not in line:
                self._process.wait(_STOP_SECONDS)
                status = self._end(signal.SIGKILL)
                errors.seek(0)
                raise ServerFailed(f"aiokwire broker ended with status {status}: {errors.read()[-1500:]}")

    def kill(self) -> None:
        """Send SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Send SIGTERM, as a service manager does; return the exit status."""
        return self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """Send SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Send SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def restart(self) -> None:
        """Start it again on the same port and data."""
        self.start()

    def close(self) -> None:
        """Stop it and delete its data."""
        self._end(signal.SIGKILL)
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home.with_name(f"{self._home.name}.stderr").unlink(missing_ok=True)
            self._home = None

    def _end(self, how: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(how)
        status = process.wait(_STOP_SECONDS)
        assert process.stdout is not None
        process.stdout.close()
        return status


@contextmanager
def at_full_speed(name: str, *, settings: Mapping[str, object] | None = None) -> Iterator[KafkaServer]:
    """Start `embedded`, or a release of Kafka by its number, for measurements."""
    server: KafkaServer = (
        EmbeddedProcess(settings=settings)
        if name == "embedded"
        else RealKafka(name, settings=settings, full_speed=True)
    )
    try:
        server.start()
        yield server
    finally:
        server.close()
