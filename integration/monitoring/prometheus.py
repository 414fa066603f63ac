"""Prometheus: from PATH, or from Debian's package, which is unpacked in `build/` without root."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from integration.kafka import MissingPrerequisite
from integration.kafka.server import free_port

_BUILD = Path(__file__).resolve().parents[2] / "build" / "prometheus"
_SECONDS = 120
_READY_SECONDS = 60
_CONFIG = """\
global:
  scrape_interval: 500ms
scrape_configs:
"""


def program(name: str) -> str:
    """Return the path of `prometheus` or `promtool`.

    Raises:
        MissingPrerequisite: it is not installed, and Debian's package cannot be downloaded.
    """
    found = shutil.which(name)
    if found is not None:
        return found
    unpacked = _BUILD / "usr" / "bin" / name
    if not unpacked.exists():
        _unpack()
    return str(unpacked)


def _unpack() -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise MissingPrerequisite("Prometheus: install prometheus and promtool")
    _BUILD.mkdir(parents=True, exist_ok=True)
    for command in (["apt-get", "download", "prometheus"], ["sh", "-c", "dpkg-deb -x prometheus_*.deb ."]):
        done = subprocess.run(command, cwd=_BUILD, capture_output=True, text=True, timeout=_SECONDS, check=False)
        if done.returncode:
            raise MissingPrerequisite(f"Prometheus: {' '.join(command)} failed: {done.stderr.strip()[-300:]}")


class Prometheus:
    """A running server."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str, **arguments: str) -> Any:
        """Return the data of a call of the HTTP API."""
        with urllib.request.urlopen(f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(arguments)}") as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[Any]:
        """Return the series that an expression selects now."""
        found: list[Any] = self.get("query", query=expression)["result"]
        return found

    def wait_for(self, expression: str, seconds: float = _READY_SECONDS) -> list[Any]:
        """Return the series of an expression once there are any; none after `seconds`."""
        deadline = time.perf_counter() + seconds
        while not (found := self.query(expression)) and time.perf_counter() < deadline:
            time.sleep(0.25)
        return found


@contextmanager
def prometheus(directory: Path, targets: Mapping[str, str]) -> Iterator[Prometheus]:
    """Run a server that scrapes targets, `host:port` by the name of their job."""
    config = directory / "prometheus.yml"
    jobs = [f"  - job_name: {name}\n    static_configs: [{{targets: ['{at}']}}]\n" for name, at in targets.items()]
    config.write_text(_CONFIG + "".join(jobs))
    address = f"127.0.0.1:{free_port()}"
    command = [
        *(program("prometheus"), f"--config.file={config}", f"--web.listen-address={address}"),
        *(f"--storage.tsdb.path={directory / 'data'}", "--log.level=warn"),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_until_ready(f"http://{address}/-/ready", process)
            yield Prometheus(f"http://{address}")
        finally:
            process.terminate()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.perf_counter() + _READY_SECONDS
    while True:
        try:
            urllib.request.urlopen(url).close()
            return
        except (urllib.error.URLError, ConnectionError):
            if process.poll() is not None or time.perf_counter() > deadline:
                raise AssertionError(f"prometheus is not ready; its status is {process.poll()}") from None
            time.sleep(0.1)
