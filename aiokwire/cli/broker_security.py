"""`aiokwire broker --secure`: where its certificates are kept, and SIGHUP."""

from __future__ import annotations

import contextlib
import signal
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
import click

if TYPE_CHECKING:
    from aiokwire.broker import Broker

FOLDER = "security"  # in the data directory


@contextlib.asynccontextmanager
async def secured(options: dict[str, Any], secure_dir: str | None) -> AsyncIterator[tuple[dict[str, Any], Path]]:
    """Replace a broker's address with a SASL_SSL listener; yield its options and the properties.

    Without a data directory and `secure_dir` the files are in a private directory, which is
    deleted at the end.

    Raises: ConfigurationError, StorageError: as `stored_setup`.
    """
    from aiokwire.broker import PROPERTIES, stored_setup
    from aiokwire.threads import run_in_thread

    address, advertised = options.pop("listen"), options.pop("advertised")
    with contextlib.ExitStack() as stack:
        folder = _folder(options.get("data_dir"), secure_dir, stack)
        hosts = [one.rpartition(":")[0].strip("[]") for one in (address, advertised) if one]
        setup = await run_in_thread(stored_setup, folder, hosts, _bootstrap(advertised or address))
        yield (
            {**options, "listeners": [setup.listener(address, advertised)], "users": setup.users},
            folder / PROPERTIES,
        )


def _bootstrap(address: str) -> str:
    """Return the address for clients of this machine; "" before the system has picked a port."""
    host, _, port = address.rpartition(":")
    local = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
    return "" if port == "0" else f"{local.get(host, host)}:{port}"


def _folder(data_dir: str | None, secure_dir: str | None, stack: contextlib.ExitStack) -> Path:
    if secure_dir is not None:
        return Path(secure_dir)
    if data_dir is not None:
        return Path(data_dir) / FOLDER
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aiokwire-")))


def check(settings: dict[str, Any], *, secure: bool, secure_dir: str | None) -> None:
    """Check the security options.

    Raises: click.UsageError: they contradict each other.
    """
    if secure_dir is not None and not secure:
        raise click.UsageError("--secure-dir needs --secure")
    if secure and "listeners" in settings:
        raise click.UsageError("give --secure or --set listeners=..., not both")


async def reload_on_hangup(broker: Broker, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    """Reload changed certificates at each SIGHUP, until cancelled."""
    with anyio.open_signal_receiver(signal.SIGHUP) as signals:
        task_status.started()
        async for _ in signals:
            await broker.reload_tls()
