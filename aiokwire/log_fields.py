"""Loggers whose records have fields: `client_id`, `group_id`, `topic`, `partition`, `error_type`.

Fields come from three places: the owner of the logger (`bound`), the arguments of the line (a
partition, an error), and `extra=`. They are attributes of the `logging.LogRecord`, for formatters
that write JSON; the text of a line contains what a reader needs without them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from aiokwire.errors import BrokerError, KafkaError
from aiokwire.types import TopicPartition

# Every field that a line may have.
FIELDS: Final = (
    "client_id", "group_id", "member_id", "transactional_id", "node_id", "address", "topic", "partition", "offset",
    "error_type", "error_code",
)  # fmt: skip


class FieldLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger with fields of its own, to which it adds those of each line."""

    def __init__(self, logger: logging.Logger, fields: Mapping[str, Any] | None = None) -> None:
        super().__init__(logger, dict(fields or {}))

    def bound(self, **fields: object) -> FieldLogger:
        """Return a logger with more fields; None is left out."""
        known = {name: value for name, value in fields.items() if value is not None}
        return FieldLogger(self.logger, {**(self.extra or {}), **known})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a line with its fields."""
        if self.isEnabledFor(level):
            error = kwargs.get("exc_info")
            found = fields_of((*args, error if isinstance(error, BaseException) else None))
            kwargs["extra"] = {**(self.extra or {}), **found, **(kwargs.get("extra") or {})}
            # The line's place is that of the caller, not of this method.
            self.logger.log(level, msg, *args, **{**kwargs, "stacklevel": kwargs.get("stacklevel", 1) + 1})


def get_logger(name: str) -> FieldLogger:
    """Return the logger of this name, with fields."""
    return FieldLogger(logging.getLogger(name))


def fields_of(args: tuple[object, ...]) -> dict[str, Any]:
    """Return the fields of a line's arguments: of the first partition and the first error."""
    found: dict[str, Any] = {}
    for argument in args:
        if isinstance(argument, TopicPartition) and "topic" not in found:
            found |= {"topic": argument.topic, "partition": argument.partition}
        elif isinstance(argument, BaseException) and "error_type" not in found:
            found = _fields_of_error(argument) | found
    return found


def _fields_of_error(error: BaseException) -> dict[str, Any]:
    found: dict[str, Any] = {"error_type": type(error).__name__}
    if isinstance(error, BrokerError):
        found["error_code"] = error.code.name
    if not isinstance(error, KafkaError):
        return found
    given = vars(error)
    if given.get("topic"):
        found["topic"] = given["topic"]
        if given.get("partition") is not None and given["partition"] >= 0:
            found["partition"] = given["partition"]
    if given.get("address"):
        found["address"] = given["address"]
    return found
