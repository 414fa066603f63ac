"""Attacks by logins on a secured broker process, while another client asks for metadata."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any

import anyio

from aiokwire.protocol.messages import metadata
from aiokwire.security import Secret, UserPassword
from aiokwire.security.scram import SaltedPasswords, ScramClient
from integration.attacks.figures import Figure, faults
from integration.attacks.target import Attack, Target
from tests.broker.raw import RawClient, log_in

MECHANISM = "SCRAM-SHA-512"
SESSION = 1.0  # seconds for which the broker of V16b accepts a login


async def logins(target: Target) -> list[Figure]:
    """R11: 100 logins in each of 5 seconds, half of them with a wrong password."""
    options: dict[str, Any] = target.broker.client_options
    context = ssl.create_default_context(cafile=options["ssl_cafile"])
    done = [0, 0]
    caches = [SaltedPasswords(), SaltedPasswords()]  # else the attacker is busy with hashing

    async def try_once(number: int) -> None:
        password = options["sasl_plain_password"] if number % 2 else "wrong"
        credentials = UserPassword("admin", Secret(password))
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", target.broker.port, ssl=context)
            client = RawClient(reader, writer)
            answer = await log_in(client, ScramClient(MECHANISM, credentials, cache=caches[number % 2]))
            done[bool(answer.error_code)] += 1
            writer.transport.abort()

    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for number in range(500):
            tasks.start_soon(try_once, number)
            await anyio.sleep(max(0.0, began + number / 100 - anyio.current_time()))
    rate = sum(done) / (anyio.current_time() - began)
    return [Figure("below 100/s by", max(0.0, 100 - rate), 10), target.meter.cpu(20), *target.victim.waits(p99=50)]


async def overdue_sessions(target: Target) -> list[Figure]:
    """V16b: a client that does not log in again at the end of its session."""
    options: dict[str, Any] = target.broker.client_options
    credentials = UserPassword("admin", Secret(options["sasl_plain_password"]))
    async with target.connected(secure=True) as (client,):
        answer = await log_in(client, ScramClient(MECHANISM, credentials))
        await client.ask(metadata.MetadataRequest(topics=[]), 9)
        await anyio.sleep(SESSION * 1.5)
        client.send(metadata.MetadataRequest(topics=[]), 9)
        served = not await client.closed_by_broker()
    session = Figure("session", answer.session_lifetime_ms, SESSION * 1000, " ms")
    return [session, faults("served afterwards", served), *target.victim.waits()]


ATTACKS: dict[str, Attack] = {"V16b": overdue_sessions, "R11": logins}
