import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, final

from aiokwire.compat.aiokafka.structs import RecordMetadata
from aiokwire.producer import Delivery

def settle(delivery: Delivery, future: asyncio.Future[RecordMetadata | None]) -> None:
    """Give a record's outcome to its future."""

def settle_without_answer(delivery: Delivery, future: asyncio.Future[RecordMetadata | None]) -> None:
    """Give a record's outcome to its future; with acks=0 the result is None."""

@final
class Send:
    """The method `send` of a started producer."""

    ready: bool  # records are accepted: a transactional producer is in a transaction

    def __init__(
        self,
        submit: Callable[..., Coroutine[Any, Any, Delivery]],
        producer: Callable[[], object],
        kind: type,
        known: dict[str, set[int]],
        key_serializer: Callable[[Any], Any] | None,
        value_serializer: Callable[[Any], Any] | None,
        loop: asyncio.AbstractEventLoop,
        answers: bool,
    ) -> None: ...
    def __call__(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Any = None,
    ) -> Coroutine[Any, Any, asyncio.Future[RecordMetadata | None]]: ...
    def __setattr__(self, name: str, value: object, /) -> None: ...
    def future(self, delivery: Delivery) -> asyncio.Future[RecordMetadata | None]:
        """Return the future of an accepted record."""
