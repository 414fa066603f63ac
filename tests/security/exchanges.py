"""Plays a SASL exchange between a client and a server of this package, without a network."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from aiokwire.security.sasl import SaslClient, SaslServer

T = TypeVar("T")
MAX_MESSAGES = 10


def await_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that does not wait, without a loop: hypothesis calls a test many times."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    coroutine.close()
    raise AssertionError("the coroutine waits")


def unchanged(number: int, message: bytes) -> bytes:
    """The network of a test: passes each message on."""
    return message


async def exchange(
    client: SaslClient, server: SaslServer, *, network: Callable[[int, bytes], bytes] = unchanged
) -> None:
    """Pass the messages of both sides through `network` until both are complete.

    Raises: AuthenticationFailed: one side rejects the other.
    """
    challenge, number = b"", 0
    while not (client.is_complete and server.is_complete):
        assert number < MAX_MESSAGES, "the exchange does not end"
        response = await client.evaluate_challenge(challenge)
        if client.is_complete and server.is_complete:
            return
        challenge = network(number + 1, await server.evaluate_response(network(number, response)))
        number += 2


def finish(client: SaslClient | None, server: SaslServer, *responses: bytes) -> None:
    """Play an exchange to its end, or with these responses only."""
    if client is not None:
        await_now(exchange(client, server))
    for response in responses:
        await_now(server.evaluate_response(response))
