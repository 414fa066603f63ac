"""`aiokwire run` finds the worker that it names, and runs it until a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import httpx
import pytest
from click.testing import Result

from aiokwire import Worker
from aiokwire.cli.health_server import answer_to
from aiokwire.cli.run import load_worker

Run = Callable[..., Result]

SERVICE = """
import os
import aiokwire

worker = aiokwire.Worker("127.0.0.1:1", group_id="GROUP", group_instance_id=INSTANCE, auto_offset_reset="earliest")


@worker.handler("TOPIC")
async def show(value: str, context: aiokwire.Context) -> None:
    print(f"{context.partition} {value} {os.getpid()}", flush=True)
    if value == "stop":
        raise SystemExit(3)


def make() -> aiokwire.Worker:
    return worker


number = 5
"""


@pytest.fixture(autouse=True)
def _forget_modules() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("service_"):
            del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create modules in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "service_a.py").write_text(SERVICE.replace("INSTANCE", "None"))
    (tmp_path / "service_broken.py").write_text("import missing_library\n")
    (tmp_path / "service_wrong.py").write_text("import aiokwire\nworker = aiokwire.Worker()\n")
    return tmp_path


@pytest.mark.parametrize("name", ["service_a", "service_a:worker", "service_a:make"])
def test_a_worker_is_found_by_its_module_and_its_name(folder: Path, name: str) -> None:
    worker = load_worker(name)
    assert isinstance(worker, Worker)
    assert worker.config.group_id == "GROUP"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (":worker", "':worker' is not MODULE:WORKER, such as service.main:worker"),
        ("service_a:", "'service_a:' is not MODULE:WORKER"),
        ("service_none:worker", "module service_none was not found: run the command in the folder that contains it"),
        ("service_a.inner:worker", "module service_a.inner was not found"),
        ("service_a:other", "module service_a has no other; its workers: worker"),
        ("service_a:number", "service_a:number is a int, not a Worker or a function that returns one"),
        ("service_a:aiokwire.Worker", "is a type, not a Worker"),
        ("service_broken", "No module named 'missing_library'"),
        ("service_wrong", "a worker commits offsets for a group: pass group_id="),
    ],
)
def test_a_name_without_a_worker_is_a_mistake_of_the_command_line(folder: Path, name: str, message: str) -> None:
    with pytest.raises(click.UsageError) as failure:
        load_worker(name)
    assert message in failure.value.message


def test_a_mistake_has_the_status_of_a_usage_error(folder: Path, run: Run) -> None:
    assert run("run", "service_none:worker").exit_code == 2
    wrong = run("run", "service_a:worker", "--set", "concurrency=0")
    assert (wrong.exit_code, "concurrency" in wrong.stderr) == (2, True)


def test_a_cluster_that_does_not_respond_is_an_error_in_one_line(folder: Path, run: Run) -> None:
    failed = run("run", "service_a", "-b", "127.0.0.1:1", "--set", "bootstrap.timeout.ms=100")
    assert failed.exit_code == 1
    assert failed.stderr.count("error: ") == 1


@contextmanager
def service(
    folder: Path, bootstrap: str, topic: str, *options: str, instance: str = "None"
) -> Iterator[subprocess.Popen[str]]:
    """Run a worker for a topic as a process of its own; it is killed if it outlives the block."""
    source = SERVICE.replace("TOPIC", topic).replace("GROUP", f"g-{topic}").replace("INSTANCE", instance)
    (folder / "service_b.py").write_text(source)
    command = [sys.executable, "-m", "aiokwire", "run", "service_b:worker", "-b", bootstrap, *options]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def handled(process: subprocess.Popen[str], count: int) -> dict[str, int]:
    """Wait for handled records; return the process that handled each of them."""
    assert process.stdout is not None
    found = {}
    for _ in range(count):
        _, value, pid = process.stdout.readline().split()
        found[value] = int(pid)
    return found


def send(run: Run, folder: Path, topic: str, *values: str) -> None:
    source = folder / "lines"
    source.write_text("".join(f"{value}\n" for value in values))
    for number, value in enumerate(values):
        source.write_text(f"{value}\n")
        assert run("produce", topic, source, "-p", str(number % 2)).exit_code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.usefixtures("default_sigint")
def test_a_worker_runs_until_a_signal_and_ends_with_0(
    run: Run, bootstrap: str, topic: str, folder: Path, number: int
) -> None:
    send(run, folder, topic, "a", "b")
    with service(folder, bootstrap, topic) as process:
        assert handled(process, 2).keys() == {"a", "b"}
        process.send_signal(number)
        assert process.wait(30) == 0


def test_health_and_metrics_are_served_over_http(run: Run, bootstrap: str, topic: str, folder: Path) -> None:
    send(run, folder, topic, "a")
    with service(folder, bootstrap, topic, "--http", "127.0.0.1:0") as process:
        assert process.stderr is not None
        url = process.stderr.readline().removeprefix("serving health at ").strip()
        handled(process, 1)
        with httpx.Client(base_url=url) as client:
            assert client.get("/readyz").json() == {"ready": True, "reasons": []}
            assert client.get("/livez?verbose=1").json() == {"alive": True, "reasons": []}
            assert "messaging_process_duration_seconds_count" in client.get("/metrics").text
            assert client.get("/").status_code == 404
            assert client.post("/readyz").status_code == 405
        process.terminate()
        assert process.wait(30) == 0


def test_a_worker_that_is_not_started_is_alive_but_not_ready() -> None:
    worker = Worker("127.0.0.1:1", group_id="g")
    assert answer_to("GET", "/livez", worker)[0] == 200
    status, _, body = answer_to("GET", "/readyz", worker)
    assert (status, body) == (503, b'{"ready": false, "reasons": ["the worker is not started"]}')


@pytest.mark.parametrize("options", [[], ["--http", "127.0.0.1:0"]])
def test_what_a_handler_raises_to_end_the_process_is_its_status(
    run: Run, bootstrap: str, topic: str, folder: Path, options: list[str]
) -> None:
    send(run, folder, topic, "stop")
    with service(folder, bootstrap, topic, *options) as process:
        assert process.wait(30) == 3


def test_a_worker_stops_when_its_standard_input_is_closed(run: Run, bootstrap: str, topic: str, folder: Path) -> None:
    with service(folder, bootstrap, topic, "--exit-with-stdin") as process:
        assert process.wait(30) == 0, "pytest's standard input is empty"


def test_several_processes_share_the_partitions_and_a_killed_one_is_replaced(
    run: Run, bootstrap: str, topic: str, folder: Path
) -> None:
    with service(folder, bootstrap, topic, "--processes", "2", instance="'i'") as process:
        pids: set[int] = set()
        for attempt in range(400):  # until both have joined
            send(run, folder, topic, f"a{attempt}", f"b{attempt}")
            pids = set(handled(process, 2).values())
            if len(pids) == 2:
                break
        assert len(pids) == 2
        assert process.pid not in pids
        os.kill(min(pids), signal.SIGKILL)
        for attempt in range(400):
            send(run, folder, topic, f"c{attempt}", f"d{attempt}")
            now = set(handled(process, 2).values())
            if len(now) == 2:
                break
        assert len(now - pids) == 1
        process.terminate()
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert "ended with SIGKILL, restarting in" in process.stderr.read()
    for pid in now:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_changed_file_restarts_the_worker_and_a_broken_one_waits_for_the_next_change(
    run: Run, bootstrap: str, topic: str, folder: Path
) -> None:
    file = folder / "service_b.py"
    send(run, folder, topic, "a")
    with service(folder, bootstrap, topic, "--reload", instance="'i'") as process:
        before = handled(process, 1)["a"]
        assert before != process.pid
        source = file.read_text()
        file.write_text("this is not Python")
        assert process.stderr is not None
        for line in process.stderr:
            if "could not be started: waiting for a change" in line:
                break
        file.write_text(source.replace("{value}", "{value}-changed"))
        send(run, folder, topic, "b")
        assert handled(process, 1)["b-changed"] != before
        process.terminate()
        assert process.wait(30) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


def test_processes_that_cannot_be_started_end_the_command(bootstrap: str, folder: Path) -> None:
    command = [sys.executable, "-m", "aiokwire", "run", "service_broken", "-n", "2", "-b", bootstrap]
    failed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=50, check=False)
    assert failed.returncode == 2
    assert "No module named 'missing_library'" in failed.stderr
