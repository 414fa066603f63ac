"""Test a service against a Kafka broker in the same process, with faults on demand.

    async def test_jobs_survive_a_leader_that_moves(kafka_broker):
        kafka_broker.faults.on(ApiKey.PRODUCE, topic="jobs").error(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        ...

`kafka_broker` is a fixture of the package's pytest plugin (`plugin.py`); without pytest, use `async
with Broker(...)`, or `with ThreadedBroker(...)` where no event loop runs. See `docs/testing.md`.
Names load at first use: pytest loads the plugin in every run, and most runs need no broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.broker import (
        Broker as Broker,
        Hold as Hold,
        Journal as Journal,
        JournalEntry as JournalEntry,
        Observation as Observation,
        On as On,
        Rule as Rule,
    )
    from aiokwire.error_codes import ErrorCode as ErrorCode
    from aiokwire.protocol import ApiKey as ApiKey
    from aiokwire.testing.secure import SecureBroker as SecureBroker, ThreadedSecureBroker as ThreadedSecureBroker
    from aiokwire.testing.recording import (
        Call as Call,
        Outcome as Outcome,
        PeriodicCall as PeriodicCall,
        Result as Result,
        SentDeadLetter as SentDeadLetter,
    )
    from aiokwire.testing.threaded import ThreadedBroker as ThreadedBroker
    from aiokwire.testing.virtual_time import (
        VirtualTimeLoop as VirtualTimeLoop,
        run_in_virtual_time as run_in_virtual_time,
    )
    from aiokwire.testing.workers import WorkerTest as WorkerTest
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "broker": "Broker Hold Journal JournalEntry Observation On Rule",
            "error_codes": "ErrorCode",
            "protocol": "ApiKey",
            "testing.secure": "SecureBroker ThreadedSecureBroker",
            "testing.recording": "Call Outcome PeriodicCall Result SentDeadLetter",
            "testing.threaded": "ThreadedBroker",
            "testing.virtual_time": "VirtualTimeLoop run_in_virtual_time",
            "testing.workers": "WorkerTest",
        },
    )
