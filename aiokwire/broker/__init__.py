"""The embedded broker: a Kafka for laptops, tests and the edge, in-process or as `aiokwire broker`.

    async with Broker("data") as broker:      # or Broker() in memory
        broker.bootstrap_servers

Requests come in through `server` and `connection`, are dispatched to `handlers/<api>.py`, and act
on `state`: topics, logs (`log/`), configs, producer ids, nodes. `security/` has listeners, logins,
users, ACLs and quotas. Tests make the broker misbehave through `faults/`, public as
`aiokwire.testing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.broker.broker import Broker as Broker
    from aiokwire.broker.faults import (
        Faults as Faults,
        Hold as Hold,
        Journal as Journal,
        JournalEntry as JournalEntry,
        Observation as Observation,
        On as On,
        Rule as Rule,
    )
    from aiokwire.broker.options import BrokerOptions as BrokerOptions
    from aiokwire.broker.security.development import (
        PROPERTIES as PROPERTIES,
        Setup as Setup,
        new_setup as new_setup,
        stored_setup as stored_setup,
    )
    from aiokwire.broker.security.listeners import Listener as Listener
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "broker.broker": "Broker",
            "broker.faults": "Faults Hold Journal JournalEntry Observation On Rule",
            "broker.options": "BrokerOptions",
            "broker.security.development": "PROPERTIES Setup new_setup stored_setup",
            "broker.security.listeners": "Listener",
        },
    )
