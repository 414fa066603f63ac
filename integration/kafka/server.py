"""Kafka servers for tests and benchmarks: on a JVM or in Docker, on loopback."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from integration.kafka.fetch import MissingPrerequisite, java, libs
from integration.kafka.metadata import ask

_START_SECONDS = 240.0
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.05
_KRAFT_FROM = 4  # releases from here on run without ZooKeeper

_FRUGAL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_FULL_JVM = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Xshare:auto")

_LOG4J2 = """status=warn
appender.file.type=File
appender.file.name=file
appender.file.fileName={file}
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d %p %m (%c)%n
rootLogger.level=warn
rootLogger.appenderRef.file.ref=file
"""
_LOG4J1 = """log4j.rootLogger=WARN, file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File={file}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=%d %p %m (%c)%n
"""


class KafkaServer(Protocol):
    """A broker in another process or container, as scenarios need it."""

    version: str

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, the same after a restart."""

    def start(self) -> None:
        """Start the broker; return when it responds."""

    def kill(self) -> None:
        """Send SIGKILL: no clean shutdown, no flush."""

    def stop(self) -> int:
        """Send SIGTERM for a clean shutdown; return the exit status."""

    def freeze(self) -> None:
        """Send SIGSTOP: connections stay open, without responses until `thaw()`."""

    def thaw(self) -> None:
        """Send SIGCONT."""

    def restart(self) -> None:
        """Start it again after `kill()` or `stop()`, on the same port and data."""

    def close(self) -> None:
        """Stop it and delete its data."""


class ServerFailed(Exception):
    """A server did not start; the message ends with the last lines of its log."""


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(host: str, port: int, topic: str | None = None) -> bool:
    """Whether the metadata of a broker contains a broker.

    The metadata of Kafka 0.8 is empty before the first topic, which a request for `topic` creates.
    """
    try:
        return ask(host, port, topic).brokers > 0
    except OSError:
        return False


class RealKafka:
    """Kafka of one release on a JVM, with its own ZooKeeper if the release needs one.

    `full_speed` gives it the heap and the compiler of a production broker, for benchmarks;
    otherwise it starts fast with little memory. `jvm_options` are for the broker's JVM,
    `format_options` for the tool that formats its directory.
    """

    def __init__(
        self,
        version: str = "4.3.1",
        *,
        settings: Mapping[str, object] | None = None,
        full_speed: bool = False,
        port: int = 0,
        jvm_options: Sequence[str] = (),
        format_options: Sequence[str] = (),
    ) -> None:
        self.version = version
        self.port = port or free_port()
        self._settings = dict(settings or {})
        self._full_speed = full_speed
        self._jvm_options = list(jvm_options)
        self._format_options = list(format_options)
        self._kraft = int(version.split(".", maxsplit=1)[0]) >= _KRAFT_FROM
        self._directory: Path | None = None
        self._broker: subprocess.Popen[bytes] | None = None
        self._zookeeper: subprocess.Popen[bytes] | None = None
        self._zookeeper_port = 0

    def __repr__(self) -> str:
        state = "running" if self._broker is not None and self._broker.poll() is None else "stopped"
        return f"<RealKafka {self.version} {self.bootstrap_servers} {state}>"

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The broker's process id."""
        if self._broker is None:
            raise ServerFailed(f"Kafka {self.version} was not started")
        return self._broker.pid

    @property
    def data_dir(self) -> Path:
        """The directory of the broker's data."""
        return self._home / "data"

    @property
    def _home(self) -> Path:
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="aiokwire-kafka-"))
        return self._directory

    def start(self) -> None:
        """Start the servers and wait until the broker responds.

        Raises:
            MissingPrerequisite: Java or the jars are missing.
            ServerFailed: it ended, or did not respond in time.
        """
        libs(self.version)
        try:
            if self._kraft:
                self._write("server.properties", self._kraft_settings())
                self._format()
            else:
                self._start_zookeeper()
            self._start_broker()
        except BaseException:
            self.close()
            raise

    def kill(self) -> None:
        """Kill the broker with SIGKILL; its ZooKeeper keeps running."""
        if self._broker is not None:
            self._broker.send_signal(signal.SIGKILL)
            self._broker.wait(_STOP_SECONDS)

    def stop(self) -> int:
        """Stop the broker with SIGTERM, as a service manager does; return its exit status."""
        if self._broker is None:
            return 0
        self._broker.terminate()
        return self._broker.wait(_STOP_SECONDS)

    def freeze(self) -> None:
        """Suspend the broker's process until `thaw()`."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume the broker's process."""
        os.kill(self.pid, signal.SIGCONT)

    def restart(self) -> None:
        """Start the broker again on the same port and data."""
        if self._zookeeper is not None:
            self._await_unregistered()
        self._start_broker()

    def close(self) -> None:
        """Stop the servers and delete their data."""
        for process in (self._broker, self._zookeeper):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait(_STOP_SECONDS)
        self._broker = self._zookeeper = None
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # processes

    def _jvm(self, *arguments: str, heap_mb: int, log: str) -> list[str]:
        if self._kraft:
            logging = self._write("log4j2.properties", {}, text=_LOG4J2.format(file=self._home / log))
            option = f"-Dlog4j2.configurationFile={logging}"
        else:
            logging = self._write(f"{log}.log4j", {}, text=_LOG4J1.format(file=self._home / log))
            option = f"-Dlog4j.configuration=file:{logging}"
        flags = _FULL_JVM if self._full_speed else _FRUGAL_JVM
        heap = [f"-Xmx{heap_mb}m", f"-Xms{heap_mb if self._full_speed else 32}m"]
        return [java(), *heap, *flags, option, "-cp", f"{libs(self.version)}/*", *arguments]

    def _spawn(self, command: list[str], output: str) -> subprocess.Popen[bytes]:
        with (self._home / output).open("ab") as sink:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT)

    def _format(self) -> None:
        # a first byte of 0 makes the id start with "A": the tool parses a leading dash as an option
        cluster_id = base64.urlsafe_b64encode(bytes(1) + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        tool = ("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._home / "server.properties"))
        command = self._jvm(*tool, *self._format_options, heap_mb=128, log="format.log")
        done = subprocess.run(command, capture_output=True, text=True, timeout=_START_SECONDS, check=False)
        if done.returncode:
            raise ServerFailed(
                f"Kafka {self.version} could not format its directory: {(done.stdout + done.stderr)[-800:]}"
            )

    def _start_zookeeper(self) -> None:
        self._zookeeper_port = port = free_port()
        settings = {
            "dataDir": self._home / "zookeeper",
            "clientPort": port,
            "clientPortAddress": "127.0.0.1",
            "maxClientCnxns": 0,
            "tickTime": 500,
        }
        path = self._write("zookeeper.properties", settings)
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._zookeeper = self._spawn(self._jvm(main, str(path), heap_mb=128, log="zookeeper.log"), "zookeeper.out")
        self._await(self._zookeeper, port, "ZooKeeper", listens)
        self._write("server.properties", self._zookeeper_settings(port))

    def _start_broker(self) -> None:
        heap_mb = 1024 if self._full_speed else 512 if self._kraft else 384
        main = (*self._jvm_options, "kafka.Kafka")
        command = self._jvm(*main, str(self._home / "server.properties"), heap_mb=heap_mb, log="broker.log")
        self._broker = self._spawn(command, "broker.out")
        self._await(self._broker, self.port, f"Kafka {self.version}", self._answers)

    def _await_unregistered(self) -> None:
        """Wait until ZooKeeper has expired a killed broker's session, which Kafka 0.8 needs."""
        deadline = time.perf_counter() + _START_SECONDS
        while b"/brokers/ids/0" in self._ask_zookeeper(b"dump"):
            if time.perf_counter() > deadline:
                raise ServerFailed(f"ZooKeeper keeps the registration of the killed broker: {self._end_of_logs()}")
            time.sleep(_POLL_SECONDS)

    def _ask_zookeeper(self, word: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self._zookeeper_port), timeout=5) as link:
            link.sendall(word)
            with link.makefile("rb") as answer:
                return answer.read()

    def _await(self, process: subprocess.Popen[bytes], port: int, name: str, check: Callable[[str, int], bool]) -> None:
        deadline = time.perf_counter() + _START_SECONDS
        while not check("127.0.0.1", port):
            if process.poll() is not None:
                raise ServerFailed(
                    f"{name} ended with status {process.returncode} while starting: {self._end_of_logs()}"
                )
            if time.perf_counter() > deadline:
                raise ServerFailed(
                    f"{name} did not respond on port {port} in {_START_SECONDS} s: {self._end_of_logs()}"
                )
            time.sleep(_POLL_SECONDS)

    def _answers(self, host: str, port: int) -> bool:
        return answers(host, port, "first-topic" if self.version.startswith("0.8.") else None)

    def _end_of_logs(self) -> str:
        parts = []
        for path in sorted([*self._home.glob("*.log"), *self._home.glob("*.out")]):
            with contextlib.suppress(OSError):
                parts.append(f"{path.name}: {path.read_text(errors='replace')[-1200:]}")
        return "\n".join(parts)

    # settings

    def _write(self, name: str, settings: Mapping[str, object], *, text: str | None = None) -> Path:
        path = self._home / name
        path.write_text(text if text is not None else "".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def _kraft_settings(self) -> dict[str, object]:
        controller = free_port()
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self.data_dir,
            "num.partitions": 4,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.num.partitions": 4,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            # a killed broker can register again only after its old session has expired
            "broker.session.timeout.ms": 4000,
            "broker.heartbeat.interval.ms": 1000,
            **self._settings,
        }

    def _zookeeper_settings(self, zookeeper: int) -> dict[str, object]:
        settings: dict[str, object] = {
            "broker.id": 0,
            "log.dirs": self.data_dir,
            "zookeeper.connect": f"127.0.0.1:{zookeeper}/kafka",
            "zookeeper.session.timeout.ms": 3000,
            "num.partitions": 4,
            "delete.topic.enable": "true",
        }
        if self.version.startswith("0.8."):
            settings |= {"host.name": "127.0.0.1", "port": self.port}
        else:
            settings |= {"listeners": f"PLAINTEXT://127.0.0.1:{self.port}", "offsets.topic.replication.factor": 1}
        return {**settings, **self._settings}


def listens(host: str, port: int) -> bool:
    """Whether a server accepts connections at a port."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


class DockerKafka:
    """Kafka in a container of its official image; the host's port is chosen before the start."""

    def __init__(self, version: str = "4.3.1", *, settings: Mapping[str, object] | None = None) -> None:
        self.version = version
        self.port = free_port()
        self._settings = dict(settings or {})
        self._container: Any = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the container and wait until the broker responds.

        Raises:
            ServerFailed: it did not respond in time.
        """
        from testcontainers.core.container import DockerContainer

        container = DockerContainer(f"apache/kafka:{self.version}")
        loopback = ("127.0.0.1", self.port)
        container.ports["9092/tcp"] = loopback  # type: ignore[assignment]  # the engine takes an address and a port
        for key, value in self._environment().items():
            container = container.with_env(key, str(value))
        self._container = container.start()
        self._await()

    def kill(self) -> None:
        self._container.get_wrapped_container().kill()

    def stop(self) -> int:
        self._container.get_wrapped_container().kill(signal="SIGTERM")
        return int(self._container.get_wrapped_container().wait(timeout=_STOP_SECONDS)["StatusCode"])

    def freeze(self) -> None:
        self._container.get_wrapped_container().pause()

    def thaw(self) -> None:
        self._container.get_wrapped_container().unpause()

    def restart(self) -> None:
        self._container.get_wrapped_container().start()
        self._await()

    def close(self) -> None:
        if self._container is not None:
            self._container.stop()
            self._container = None

    def _await(self) -> None:
        deadline = time.perf_counter() + _START_SECONDS
        while not answers("127.0.0.1", self.port):
            if time.perf_counter() > deadline:
                raise ServerFailed(f"Kafka {self.version} in Docker did not respond on port {self.port}")
            time.sleep(_POLL_SECONDS)

    def _environment(self) -> dict[str, object]:
        settings = {
            "node.id": 1,
            "process.roles": "broker,controller",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "controller.quorum.voters": "1@localhost:9093",
            "num.partitions": 4,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            **self._settings,
        }
        return {"KAFKA_" + key.upper().replace(".", "_"): value for key, value in settings.items()}


def docker_answers() -> bool:
    """Whether a Docker engine is available."""
    client = shutil.which("docker")
    if client is None:
        return False
    try:
        asked = subprocess.run([client, "info"], capture_output=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0


def real_kafka(version: str, *, settings: Mapping[str, object] | None = None) -> KafkaServer:
    """Return a server of this release, not started: in Docker if available, else on a JVM.

    Raises:
        MissingPrerequisite: neither is available.
    """
    if int(version.split(".", maxsplit=1)[0]) >= _KRAFT_FROM and docker_answers():
        return DockerKafka(version, settings=settings)
    java()
    libs(version)
    return RealKafka(version, settings=settings)


__all__ = ["DockerKafka", "KafkaServer", "MissingPrerequisite", "RealKafka", "ServerFailed", "free_port", "real_kafka"]
