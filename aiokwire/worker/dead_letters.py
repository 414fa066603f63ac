"""Failed records for retry topics and dead-letter topics, with their origin and the reason.

Headers have the names of Kafka Connect's dead-letter queues (KIP-298) where it has one. All values
are strings, as Connect's.
"""

from __future__ import annotations

import enum
import logging
import re
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from aiokwire._text import printable
from aiokwire.clock import wall_ms
from aiokwire.consumer import ConsumerRecord, DeserializationError
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ConfigurationError, RecordRejected
from aiokwire.types import Headers, RecordMetadata, TopicPartition

if TYPE_CHECKING:
    from aiokwire.producer import Producer
    from aiokwire.worker.retry_topics import RetryTopics

logger: logging.Logger = logging.getLogger("aiokwire.worker")

DEFAULT_TOPIC: Final = "{topic}.dlq"


class LetterHeader(enum.StrEnum):
    """The names of the headers of a dead letter."""

    TOPIC = "__connect.errors.topic"
    PARTITION = "__connect.errors.partition"
    OFFSET = "__connect.errors.offset"
    STAGE = "__connect.errors.stage"
    EXCEPTION = "__connect.errors.exception.class.name"
    MESSAGE = "__connect.errors.exception.message"
    STACKTRACE = "__connect.errors.exception.stacktrace"
    TIMESTAMP = "aiokwire.errors.timestamp"
    HANDLER = "aiokwire.errors.handler"
    ATTEMPTS = "aiokwire.errors.attempts"
    GROUP = "aiokwire.errors.group"
    # Milliseconds since the epoch before which a record of a retry topic is not handled.
    NOT_BEFORE = "aiokwire.retry.not-before"
    # The number of times a record of a retry topic was sent to one.
    ROUND = "aiokwire.retry.round"


# The headers that an earlier failure may have left.
NAMES: Final = frozenset(LetterHeader)
# Connect's names for the stage at which a record failed.
STAGE_DECODING: Final = "VALUE_CONVERTER"
STAGE_HANDLING: Final = "TASK_PUT"
# Bytes of UTF-8; a record's headers count to its size, which brokers limit to 1 MiB by default.
MESSAGE_LIMIT: Final = 2_048
STACKTRACE_LIMIT: Final = 16_384

_TEMPLATE: Final = re.compile(r"(?:[a-zA-Z0-9._-]|\{topic\}|\{group\})+")


class Origin(NamedTuple):
    """The place of an original record: topic, partition, offset and timestamp."""

    topic: str
    partition: int
    offset: int
    timestamp: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class DeadLetters:
    """Produces the dead letters of a worker, and the records of its retry topics.

    Args:
        producer: started; its records are raw bytes.
        topic: the topic of dead letters, where `{topic}` stands for the origin's and `{group}` for
            the worker's group.
        group_id: the worker's group.
        retry_topics: those of the worker; only there a record's headers name its origin. None: they
            do in any topic.

    Raises: ConfigurationError: `topic` is not the name of a topic, or a template of one.
    """

    def __init__(
        self,
        producer: Producer[bytes, bytes],
        topic: str = DEFAULT_TOPIC,
        *,
        group_id: str | None = None,
        retry_topics: RetryTopics | None = None,
    ) -> None:
        self._producer = producer
        self._template = checked_template(topic, group_id)
        self._group_id = group_id
        self._retry_topics = retry_topics

    @property
    def topics(self) -> re.Pattern[str]:
        """The names of all topics of dead letters: what a subscription by pattern must exclude."""
        return re.compile(re.escape(self._template).replace(re.escape("{topic}"), ".+"))

    def topic_for(self, topic: str) -> str:
        """Return the topic for the dead letters of a topic, or of its retry topics."""
        found = None if self._retry_topics is None else self._retry_topics.find(topic)
        return self._template.replace("{topic}", topic if found is None else found.topic)

    def origin_of(self, record: ConsumerRecord[bytes, bytes]) -> Origin:
        """Return where a record was first read."""
        return origin_of(record) if self._retry_topics is None else self._retry_topics.origin_of(record)

    async def send(
        self, record: ConsumerRecord[bytes, bytes], error: BaseException, *, attempts: int, handler: str
    ) -> RecordMetadata:
        """Produce a record that failed, with its key, value and headers, and wait until it is
        acknowledged. The stacktrace is left out if the dead letter is too large with it.

        Args:
            record: the record with its raw bytes.
            error: why it failed.
            attempts: the number of calls of the handler.
            handler: the handler's name.

        Raises: KafkaError: as `Producer.send`; the record is then neither handled nor kept.
        """
        origin = self.origin_of(record)
        headers = error_headers(
            record, error, attempts=attempts, handler=handler, group_id=self._group_id, origin=origin
        )
        metadata = await self._produce(self.topic_for(origin.topic), record, headers)
        logger.warning(
            "%s at offset %d: handler %s failed after %d attempt(s), the record is now in %s at offset %d: %s",
            origin.topic_partition,
            origin.offset,
            handler,
            attempts,
            metadata.topic_partition,
            metadata.offset,
            summary_of(error),
        )
        return metadata

    async def send_to_retry_topic(
        self,
        record: ConsumerRecord[bytes, bytes],
        error: BaseException,
        *,
        topic: str,
        delay: float,
        rounds: int,
        attempts: int,
        handler: str,
    ) -> RecordMetadata:
        """Produce a record that is handled again after `delay` seconds, as `send`; `rounds` counts
        its retry topics, this one included.

        Raises: KafkaError: as `Producer.send`.
        """
        origin = self.origin_of(record)
        headers = error_headers(
            record, error, attempts=attempts, handler=handler, group_id=self._group_id, origin=origin
        )
        headers += retry_headers(wall_ms() + 1 + round(delay * 1000), rounds)  # `wall_ms` rounds down
        metadata = await self._produce(topic, record, headers)
        logger.info(
            "%s at offset %d: handler %s failed after %d attempt(s), the record is now in %s at offset %d and is "
            "handled again in %g s: %s",
            origin.topic_partition,
            origin.offset,
            handler,
            attempts,
            metadata.topic_partition,
            metadata.offset,
            delay,
            summary_of(error),
        )
        return metadata

    async def _produce(
        self, topic: str, record: ConsumerRecord[bytes, bytes], headers: list[tuple[str, bytes | None]]
    ) -> RecordMetadata:
        """Send a record with its failure; without the text of it if the record is too large."""
        try:
            return await self._producer.send(topic, record.value, record.key, headers=headers)
        except RecordRejected as rejection:
            if rejection.code not in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
                raise
            texts = (LetterHeader.STACKTRACE, LetterHeader.MESSAGE)
            shorter = [(name, value) for name, value in headers if name not in texts]
            return await self._producer.send(topic, record.value, record.key, headers=shorter)


def checked_template(topic: object, group_id: str | None = None) -> str:
    """Return the template of a topic's name with `{group}` replaced.

    Raises: ConfigurationError: it is not the name of a topic, or a template of one.
    """
    if not isinstance(topic, str) or not _TEMPLATE.fullmatch(topic) or topic == "{topic}":
        raise ConfigurationError(
            f"{topic!r} is not a topic for dead letters: use letters, digits, '.', '_', '-', {{topic}} for the "
            "record's topic and {group} for the worker's group, such as '{topic}.dlq'"
        )
    if "{group}" in topic and group_id is None:
        raise ConfigurationError(f"{topic!r} has {{group}}, but the worker has no group_id")
    return topic.replace("{group}", group_id or "")


def origin_of(record: ConsumerRecord[bytes, bytes]) -> Origin:
    """Return where a record was first read: its own place, or that in the headers of a retry."""
    headers = dict(record.headers)
    if LetterHeader.NOT_BEFORE in headers:
        found = parsed_origin(headers)
        if found is not None:
            return found
    return Origin(record.topic, record.partition, record.offset, record.timestamp)


def parsed_origin(headers: Mapping[str, bytes | None]) -> Origin | None:
    """Return the origin in the headers of a dead letter, also of one that Connect wrote; None if
    they are incomplete. The timestamp is -1 if it is unknown."""
    try:
        topic = (headers[LetterHeader.TOPIC] or b"").decode()
        partition, offset = int(headers[LetterHeader.PARTITION] or b""), int(headers[LetterHeader.OFFSET] or b"")
        timestamp = int(headers.get(LetterHeader.TIMESTAMP) or b"-1")
    except (KeyError, ValueError):
        return None
    return Origin(topic, partition, offset, timestamp) if topic else None


def error_headers(
    record: ConsumerRecord[bytes, bytes],
    error: BaseException,
    *,
    attempts: int,
    handler: str,
    group_id: str | None,
    origin: Origin | None = None,
) -> list[tuple[str, bytes | None]]:
    """Return a record's headers with its origin and its failure, in place of an earlier failure.

    Arguments as for `DeadLetters.send`.
    """
    if origin is None:
        origin = origin_of(record)
    added = {
        LetterHeader.TOPIC: origin.topic,
        LetterHeader.PARTITION: origin.partition,
        LetterHeader.OFFSET: origin.offset,
        LetterHeader.TIMESTAMP: origin.timestamp,
        LetterHeader.STAGE: STAGE_DECODING if isinstance(error, DeserializationError) else STAGE_HANDLING,
        LetterHeader.HANDLER: handler,
        LetterHeader.ATTEMPTS: attempts,
        LetterHeader.EXCEPTION: class_name(error),
        LetterHeader.MESSAGE: _shortened(message_of(error), MESSAGE_LIMIT),
        LetterHeader.STACKTRACE: _shortened(_stacktrace(error), STACKTRACE_LIMIT, keep_end=True),
    }
    if group_id is not None:
        added[LetterHeader.GROUP] = group_id
    return without_error_headers(record.headers) + [(name, _encoded(str(value))) for name, value in added.items()]


def retry_headers(not_before: int, rounds: int) -> list[tuple[str, bytes | None]]:
    """Return the headers that only records of retry topics have; `not_before` in milliseconds
    since the epoch."""
    return [(LetterHeader.NOT_BEFORE, b"%d" % not_before), (LetterHeader.ROUND, b"%d" % rounds)]


def without_error_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """Return the headers that the record had before it failed."""
    return [(name, value) for name, value in headers if name not in NAMES]


def class_name(error: BaseException) -> str:
    """Return the qualified name of an error's class: `ValueError`, `billing.errors.Declined`."""
    kind = type(error)
    module = "aiokwire" if kind.__module__.startswith("aiokwire.") else kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def message_of(error: BaseException) -> str:
    """Return the text of an error, even if its `__str__` raises."""
    try:
        return str(error)
    except Exception as failure:  # the `__str__` of a user's class
        return f"<str() raised {type(failure).__name__}>"


def summary_of(error: BaseException) -> str:
    """Return an error as one line for logs."""
    return printable(f"{class_name(error)}: {_shortened(message_of(error), 300)}")


def _stacktrace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _shortened(text: str, limit: int, *, keep_end: bool = False) -> str:
    """Return a text of at most `limit` bytes of UTF-8; "..." marks what is left out."""
    data = _encoded(text)
    if len(data) <= limit:
        return text
    if keep_end:
        return "..." + data[3 - limit :].decode(errors="ignore")
    return data[: limit - 3].decode(errors="ignore") + "..."


def _encoded(text: str) -> bytes:
    return text.encode(errors="backslashreplace")  # surrogates have no UTF-8
