"""`aiokwire run MODULE:WORKER`: runs a worker, in several processes if wanted, until SIGTERM."""

from __future__ import annotations

import asyncio
import importlib
import logging
import random
import sys
import traceback
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
import click

from aiokwire.cli.connection import default_options, overriding_options, settings_options
from aiokwire.cli.health_server import serve_health
from aiokwire.cli.options import consumer_options
from aiokwire.cli.reloading import FileWatch
from aiokwire.cli.running import new_event_loop
from aiokwire.cli.standard import stdin_closed
from aiokwire.cli.supervising import Supervisor
from aiokwire.errors import KafkaError

if TYPE_CHECKING:
    from aiokwire.worker import Worker

logger: logging.Logger = logging.getLogger("aiokwire.cli.run")


@click.command("run")
@click.argument("name", metavar="MODULE:WORKER")
@click.option(
    "--bootstrap",
    "-b",
    metavar="HOST:PORT",
    envvar="AIOKWIRE_BOOTSTRAP",
    help="Brokers, instead of those in the worker's code.",
)
@settings_options
@consumer_options
@click.option("--processes", "-n", type=click.IntRange(1), default=1, show_default=True, help="Number of processes.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0, min_open=True),
    default=40.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between SIGTERM and SIGKILL with --processes; more than shutdown_timeout_ms.",
)
@click.option("--reload/--no-reload", help="Restart when a Python file below --reload-dir changes.")
@click.option(
    "--reload-dir",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=".",
    show_default=True,
    help="Folder that --reload watches.",
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Serve /livez, /readyz and /metrics at this address; each further process uses the next port.",
)
@click.option("--exit-with-stdin", is_flag=True, help="Stop when standard input is closed.")
@click.option("--number", type=int, hidden=True, help="Number of this process.")
def command(
    *,
    name: str,
    bootstrap: str | None,
    settings: dict[str, Any],
    processes: int,
    grace: float,
    reload: bool,
    reload_dir: Path,
    http: str | None,
    exit_with_stdin: bool,
    number: int | None,
) -> None:
    """Run a worker until SIGTERM or Ctrl-C.

    MODULE:WORKER is the name of a worker, or of a function that returns one, in a module that can
    be imported from the current folder: `service.main:worker`. A signal stops it gracefully: the
    running handlers finish, offsets are committed, and the status is 0. A second signal cancels the
    handlers.
    """
    if processes > 1 or reload:
        changed = FileWatch(reload_dir).changed if reload else None
        supervisor = Supervisor(_command_of_process, processes, grace=grace, changed=changed, rng=random.Random())
        _exit_with_status_of(supervisor.run)
    worker = load_worker(name)
    try:
        options = {**default_options(worker.config), **overriding_options(bootstrap), **settings}
        options.update(_own_ids(worker, number))
        if options:
            worker.configure(**options)
    except KafkaError as error:
        raise click.UsageError(str(error)) from None

    async def main() -> int:
        async with AsyncExitStack() as stack:
            if http is not None:
                url = await stack.enter_async_context(serve_health(http, worker, number or 1))
                click.echo(f"serving health at {url}", err=True)
            await _run(worker, exit_with_stdin=exit_with_stdin)
        return 0

    _exit_with_status_of(main)


def _command_of_process(number: int) -> list[str]:
    """Return this command for one process; of a repeated option, the last value counts."""
    own = ["--processes", "1", "--no-reload", "--exit-with-stdin", "--number", str(number)]
    return [sys.executable, "-m", "aiokwire", *sys.argv[1:], *own]


def _own_ids(worker: Worker, number: int | None) -> dict[str, str]:
    """Return ids that processes must not share, with the number of the process."""
    ids = {"group_instance_id": worker.config.group_instance_id, "transactional_id": worker.config.transactional_id}
    return {} if number is None else {key: f"{value}-{number}" for key, value in ids.items() if value is not None}


async def _run(worker: Worker, *, exit_with_stdin: bool) -> None:
    if not exit_with_stdin:
        await worker.run()
        return
    async with anyio.create_task_group() as tasks:

        async def stop_with_stdin() -> None:
            await stdin_closed()
            logger.warning("standard input was closed: stopping the worker")
            worker.stop()

        tasks.start_soon(stop_with_stdin)
        await worker.run()
        tasks.cancel_scope.cancel()


def _exit_with_status_of(main: Any) -> NoReturn:
    """Run a coroutine function that handles SIGINT and SIGTERM itself; exit with its status."""
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            sys.exit(runner.run(main()))
    except BaseExceptionGroup as group:
        known, rest = group.split(KafkaError)
        if rest is not None or known is None:
            raise
        _fail(known)
    except KafkaError as error:
        _fail(error)


def _fail(error: BaseException) -> NoReturn:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    print(f"error: {error}", file=sys.stderr)
    sys.exit(1)


# --- the worker's module ----------------------------------------------------------------------------------------------


def load_worker(name: str) -> Worker:
    """Return the worker of `MODULE:WORKER`, where WORKER may be a function that returns one.

    Raises: click.UsageError: there is none; the message has the traceback of a module that cannot
    be imported.
    """
    from aiokwire.worker import Worker

    module_name, colon, attribute = name.partition(":")
    if not module_name or (colon and not attribute):
        raise click.UsageError(f"{name!r} is not MODULE:WORKER, such as service.main:worker")
    found = _attribute_of(_import(module_name), attribute or "worker")
    if callable(found) and not isinstance(found, (Worker, type)):
        found = found()
    if not isinstance(found, Worker):
        raise click.UsageError(f"{name} is a {type(found).__name__}, not a Worker or a function that returns one")
    return found


def _import(name: str) -> Any:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise click.UsageError(f"{name} cannot be imported:\n{traceback.format_exc()}") from None
        raise click.UsageError(
            f"module {name} was not found: run the command in the folder that contains it ({Path.cwd()} does not), or "
            "install its package"
        ) from None
    except Exception:
        raise click.UsageError(f"{name} cannot be imported:\n{traceback.format_exc()}") from None


def _attribute_of(module: Any, path: str) -> Any:
    found = module
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise click.UsageError(f"module {module.__name__} has no {path}{_workers_of(module)}") from None
    return found


def _workers_of(module: Any) -> str:
    from aiokwire.worker import Worker

    names = [name for name, value in vars(module).items() if isinstance(value, Worker)]
    return f"; its workers: {', '.join(names)}" if names else ""
