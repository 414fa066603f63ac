"""kafka-python's messages, as an oracle. Its import warns on Python 3.11, and warnings are errors
here."""

from __future__ import annotations

import warnings
from importlib import import_module
from pkgutil import walk_packages
from typing import Any


def peer(module: str) -> Any:
    """A module of kafka-python, which has no types."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_module(module)


def request_and_response_types() -> dict[str, Any]:
    """Return a class by Kafka's name of the message."""
    base = peer("kafka.protocol.api_message").ApiMessage
    packages = walk_packages(peer("kafka.protocol").__path__, "kafka.protocol.")
    names = [info.name for info in packages if ".old" not in info.name and "generate" not in info.name]
    return {
        name: item
        for module in map(peer, names)
        for name, item in vars(module).items()
        if isinstance(item, type) and issubclass(item, base) and item is not base
    }
