"""Errors as Spark shows them: in its Python processes an error of ours is one sentence, without a traceback of ours.

Spark sends the text of an exception from its Python process to the JVM, as a rule with the traceback. What is wrong
with an option or a topic stands in the message alone, and the traceback buries it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

from aiokwire.errors import KafkaError

# Set by Spark in each Python process that it starts, and read by it when an exception leaves such a process.
_RUNTIME: Final = "SPARK_PYTHON_RUNTIME"
_HIDE: Final = "SPARK_HIDE_TRACEBACK"


@contextlib.contextmanager
def one_sentence() -> Iterator[None]:
    """Within the block, an error of ours leaves one of Spark's Python processes without its traceback.

    The process ends with the error, so that the setting hides nothing of what others do there.
    """
    try:
        yield
    except KafkaError:
        if _RUNTIME in os.environ:
            os.environ[_HIDE] = "1"
        raise
