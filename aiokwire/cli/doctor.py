"""`aiokwire doctor ADDRESS`: tries each step from the name to the advertised listeners.

One line for each step: `ok` or `FAILED` with what to do. The steps after a failure are left out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import anyio
import click

from aiokwire._text import printable
from aiokwire.cli.connection import bootstrap_option, connect_options
from aiokwire.cli.running import run
from aiokwire.errors import AuthenticationFailed, KafkaError

if TYPE_CHECKING:
    from aiokwire.cluster import Broker, ClientConfig
    from aiokwire.net import Address

TOTAL_SECONDS: Final = 15.0
LOGIN_SECONDS: Final = 5.0
MAX_LISTENERS: Final = 50
WIDTH: Final = 80


@click.command("doctor")
@click.argument("address", required=False)
@bootstrap_option
def command(address: str | None, bootstrap: str) -> None:
    """Find out why a client cannot connect: name, port, TLS, login, advertised listeners.

    ADDRESS is host:port, --bootstrap by default. Exits with 1 if a step fails.
    """

    async def main() -> int:
        from aiokwire.cluster import ClientConfig

        config = ClientConfig(**{**connect_options(), "bootstrap_servers": address or bootstrap})
        report = Report()
        with _quiet(), anyio.move_on_after(TOTAL_SECONDS) as scope:
            await examine(config, report)
        if scope.cancelled_caught:
            report.failed("time", f"not finished within {TOTAL_SECONDS:.0f} s: packets are lost, or a broker is slow")
        return 1 if report.failures else 0

    run(main)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the clients' warnings, which the report repeats. --verbose shows them."""
    logger = logging.getLogger("aiokwire")
    before = logger.level
    if logging.getLogger().getEffectiveLevel() >= logging.WARNING:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


class Report:
    """The lines that are printed, and the count of failures."""

    def __init__(self) -> None:
        self.failures: int = 0

    def ok(self, step: str, text: str) -> None:
        """Print a step that succeeded."""
        _print("ok", step, text)

    def failed(self, step: str, text: str) -> None:
        """Print a step that failed, with cause and remedy."""
        self.failures += 1
        _print("FAILED", step, text)


def _print(status: str, step: str, text: str) -> None:
    head = f"{status:<7} {step:<11} "
    lines = textwrap.wrap(
        head + printable(text), WIDTH, subsequent_indent=" " * len(head), break_long_words=False, break_on_hyphens=False
    )
    if sys.stdout.isatty():
        click.secho(status, nl=False, fg="green" if status == "ok" else "red")
        lines[0] = lines[0][len(status) :]
    click.echo("\n".join(lines))


async def examine(config: ClientConfig, report: Report) -> None:
    """Try the steps for each bootstrap address, then the listeners that one of them names."""
    reachable = [address for address in config.addresses if await _examine_port(config, address, report)]
    for address in reachable:
        if await _examine_cluster(config, address, report):
            return


async def _examine_port(config: ClientConfig, address: Address, report: Report) -> bool:
    """Whether a client may log in at an address."""
    from aiokwire.cli.probing import Unhealthy, connect, greet, handshake, new_tls, resolve

    step = "name"
    try:
        ips = await resolve(address)
        report.ok(step, f"{address.host} is " + ("an IP address" if ips == [address.host] else ", ".join(ips)))
        step = "port"
        ip = await connect(address, ips)
        report.ok(step, f"{ip} accepts connections at {address.port}")
        step, tls = "tls", None
        if config.uses_tls:
            tls = await new_tls(config)
            report.ok(step, await handshake(tls, address, ip))
        step = "broker"
        greeting = await greet(config, tls, address, ip)
        report.ok(step, f"{address} is a Kafka broker with {greeting.apis} APIs")
    except Unhealthy as error:
        report.failed(step, f"{address}: {error}")
        return False
    return not config.uses_sasl or _report_mechanisms(config, greeting.mechanisms, report)


def _report_mechanisms(config: ClientConfig, offered: tuple[str, ...], report: Report) -> bool:
    names = ", ".join(offered) or "none"
    if config.sasl_mechanism in offered:
        report.ok("mechanisms", names)
        return True
    advice = "set sasl_mechanism to one of them" if offered else "use the port of a SASL listener"
    report.failed("mechanisms", f"the broker offers {names}, not {config.sasl_mechanism}: {advice}")
    return False


async def _examine_cluster(config: ClientConfig, address: Address, report: Report) -> bool:
    """Log in, read the metadata, and try the listeners; whether the login succeeded."""
    from aiokwire.cluster import Client

    try:
        async with Client(_once(config, address)) as client:
            cluster = client.metadata.cluster
    except AuthenticationFailed as error:
        report.failed("login", str(error))
        return False
    except KafkaError as error:
        report.failed("metadata", str(error))
        return False
    user = f" as {config.sasl_plain_username}" if config.sasl_plain_username else ""
    report.ok("login", f"{config.sasl_mechanism}{user}" if config.uses_sasl else "not required (no SASL)")
    report.ok("metadata", f"cluster {cluster.cluster_id} with {len(cluster.brokers)} broker(s)")
    await _examine_listeners(config, list(cluster.brokers.values())[:MAX_LISTENERS], report)
    return True


def _once(config: ClientConfig, address: Address) -> ClientConfig:
    """Return the options for one attempt at one address."""
    return dataclasses.replace(
        config,
        bootstrap_servers=str(address),
        bootstrap_timeout_ms=0,
        socket_connection_setup_timeout_ms=LOGIN_SECONDS * 1000,
        client_id="aiokwire-doctor",
    )


async def _examine_listeners(config: ClientConfig, brokers: Sequence[Broker], report: Report) -> None:
    failures: dict[int, str] = {}
    async with anyio.create_task_group() as tasks:
        for broker in brokers:
            tasks.start_soon(_try_listener, config, broker, failures)
    for broker in sorted(brokers, key=lambda each: each.node_id):
        place = f"broker {broker.node_id} at {broker.host}:{broker.port}"
        if broker.node_id in failures:
            report.failed(
                "listener",
                f"{place} cannot be reached from here: {failures[broker.node_id]}. The address is that broker's "
                "advertised.listeners: clients must be able to resolve it and to connect to it",
            )
        else:
            report.ok("listener", f"{place} can be reached")


async def _try_listener(config: ClientConfig, broker: Broker, failures: dict[int, str]) -> None:
    from aiokwire.cluster import Client
    from aiokwire.net import Address

    try:
        with anyio.fail_after(LOGIN_SECONDS):
            async with Client(_once(config, Address(broker.host, broker.port))):
                pass
    except TimeoutError:
        failures[broker.node_id] = f"no response within {LOGIN_SECONDS:.0f} s"
    except KafkaError as error:
        failures[broker.node_id] = str(error)
