"""A producer id for an idempotent producer without transactions: asked for once at a time, until there is one or it is
refused. Used by the dispatcher; `Idempotence` keeps the id.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

from aiokwire.cluster import Client
from aiokwire.errors import ConnectionFailed, KafkaError, ProtocolViolation, RequestTimedOut, RetriableError
from aiokwire.producer.config import ProducerConfig
from aiokwire.producer.idempotence import Idempotence
from aiokwire.producer.withdrawal import Withdrawal


class ProducerIds:
    """Asks for ids."""

    def __init__(
        self,
        client: Client,
        config: ProducerConfig,
        idempotence: Idempotence,
        withdrawal: Withdrawal,
        on_obtained: Callable[[], None],
    ) -> None:
        self._client = client
        self._config = config
        self._idempotence = idempotence
        self._withdrawal = withdrawal
        self._on_obtained = on_obtained
        self._asking = False
        self._refused: KafkaError | None = None  # why none is to be had

    def want(self) -> None:
        """Somebody needs an id that is not there."""
        if self._refused is not None:
            self._withdrawal.fail_all(self._refused)
        elif not self._asking:
            self._asking = True
            self._client.spawn(self._obtain, name="producer: producer id")

    async def _obtain(self) -> None:
        backoff = self._client.new_backoff()
        try:
            while not self._idempotence.ready:
                try:
                    await self._idempotence.obtain(self._client, self._config.delivery_timeout)
                except (ConnectionFailed, ProtocolViolation, RequestTimedOut, RetriableError) as error:
                    self._withdrawal.blame(error)
                    await anyio.sleep(backoff.next())
                except KafkaError as error:
                    self._refused = error.with_traceback(None)
                    self._withdrawal.fail_all(error)
                    return
        finally:
            self._asking = False
        self._on_obtained()
