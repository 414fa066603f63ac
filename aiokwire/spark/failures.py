"""Errors as Spark shows them: the message of a `KafkaError` alone, without a traceback.

Spark sends an exception from its Python process to the JVM as text, usually with the traceback,
which buries the message that names the option or the topic.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

from aiokwire.errors import KafkaError

# Spark sets the first in each Python process that it starts, and reads the second when an exception leaves it.
_RUNTIME: Final = "SPARK_PYTHON_RUNTIME"
_HIDE: Final = "SPARK_HIDE_TRACEBACK"


@contextlib.contextmanager
def one_sentence() -> Iterator[None]:
    """Report a `KafkaError` raised in the block to Spark without its traceback.

    The process ends with the error, so that the setting affects no other exception.
    """
    try:
        yield
    except KafkaError:
        if _RUNTIME in os.environ:
            os.environ[_HIDE] = "1"
        raise
