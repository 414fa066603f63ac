"""Test a service against a Kafka broker in the same process, with faults on demand.

    async def test_jobs_survive_a_leader_that_moves(kafka_broker):
        kafka_broker.faults.on(ApiKey.PRODUCE, topic="jobs").error(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        ...

`kafka_broker` is a fixture of the package's pytest plugin (`plugin.py`); without pytest, use `async
with Broker(...)`, or `with ThreadedBroker(...)` where no event loop runs. See `docs/testing.md`.
Names load at first use: pytest loads the plugin in every run, and most runs need no broker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiokwire.broker import Broker, Hold, Journal, JournalEntry, Observation, On, Rule
    from aiokwire.error_codes import ErrorCode
    from aiokwire.protocol import ApiKey
    from aiokwire.testing.threaded import ThreadedBroker

__all__ = [
    "ApiKey",
    "Broker",
    "ErrorCode",
    "Hold",
    "Journal",
    "JournalEntry",
    "Observation",
    "On",
    "Rule",
    "ThreadedBroker",
]

_ELSEWHERE = {
    "ApiKey": "aiokwire.protocol",
    "ErrorCode": "aiokwire.error_codes",
    "ThreadedBroker": "aiokwire.testing.threaded",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE.get(name, "aiokwire.broker")), name)
