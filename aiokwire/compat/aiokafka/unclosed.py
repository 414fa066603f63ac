"""The warning about a producer or consumer that was not stopped."""

from __future__ import annotations

import asyncio
from typing import Any


def warn_unclosed(client: object, kind: str, warnings: Any) -> None:
    """Warn, and report to the running loop's exception handler, as aiokafka does."""
    name = type(client).__name__
    warnings.warn(f"Unclosed {name} {client!r}", ResourceWarning, source=client)
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    loop.call_exception_handler({kind: client, "message": f"Unclosed {name}"})
