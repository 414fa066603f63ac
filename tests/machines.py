"""Writes docs/machines.md from the tables: `python -m tests.machines`, part of `make generate`."""

from __future__ import annotations

import enum
import importlib
import pkgutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import aiokwire
from aiokwire.broker.groups import states as group
from aiokwire.broker.transactions import states as broker_transaction
from aiokwire.consumer import positions
from aiokwire.group.classic import states as classic_member
from aiokwire.group.consumer_protocol import states as consumer_protocol_member
from aiokwire.machine import mermaid
from aiokwire.net import states as connection
from aiokwire.producer.transactions import states as transaction

PAGE = Path(__file__).parents[1] / "docs" / "machines.md"
HEAD = """\
# State machines

Drawn from the tables in the code by `make generate`; a test fails when this page is stale. Each machine is an enum of
states, an enum of events and a table; one driver fires the events, and an event that a state does not know raises.
"""


class Drawn(NamedTuple):
    """One machine on the page."""

    title: str
    what: str
    module: ModuleType
    initial: enum.Enum


MACHINES = [
    Drawn("Connection", "One connection of a client to a broker.", connection, connection.ConnectionState.NEW),
    Drawn(
        "Transactional producer",
        "A producer with a transactional id.",
        transaction,
        transaction.TransactionState.UNINITIALIZED,
    ),
    Drawn(
        "Member of a group, classic protocol",
        "A member of a group that uses the classic protocol.",
        classic_member,
        classic_member.ClassicProtocolState.UNJOINED,
    ),
    Drawn(
        "Member of a group, consumer protocol",
        "A member of a group that uses the consumer protocol (KIP-848).",
        consumer_protocol_member,
        consumer_protocol_member.ConsumerProtocolState.UNJOINED,
    ),
    Drawn("Partition of a consumer", "What a partition waits for.", positions, positions.FetchState.INITIALIZING),
    Drawn(
        "Transaction in the broker",
        "What the embedded broker's coordinator knows of one transactional id.",
        broker_transaction,
        broker_transaction.TransactionState.EMPTY,
    ),
    Drawn("Group in the broker", "A group of the classic protocol.", group, group.ClassicState.EMPTY),
]


def tables() -> dict[str, Mapping[Any, Any]]:
    """Every table of transitions in the package, by its module."""
    found = {}
    for info in pkgutil.walk_packages(aiokwire.__path__, "aiokwire."):
        if ".messages." in info.name or info.name.endswith("__main__") or ".generate" in info.name:
            continue
        table = vars(importlib.import_module(info.name)).get("TRANSITIONS")
        if table is not None:
            found[info.name] = table
    return found


def page() -> str:
    """The text of docs/machines.md."""
    parts = [HEAD]
    for machine in MACHINES:
        path = machine.module.__name__.replace(".", "/") + ".py"
        drawing = mermaid(machine.module.TRANSITIONS, machine.initial)
        parts.append(
            f"## {machine.title}\n\n{machine.what} [`{path}`](../{path})\n\n```mermaid\n{drawing}```\n",
        )
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"wrote {PAGE.name}\n")
