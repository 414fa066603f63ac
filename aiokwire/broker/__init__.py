"""The embedded broker: a Kafka for laptops, tests and the edge, in-process or as `aiokwire broker`.

    async with Broker("data") as broker:      # or Broker() in memory
        broker.bootstrap_servers

Requests come in through `server` and `connection`, are dispatched to `handlers/<api>.py`, and act
on `state`: topics, logs (`log/`), configs, producer ids, nodes. Tests make it misbehave through
`faults/`, public as `aiokwire.testing`.
"""

from aiokwire.broker.broker import Broker
from aiokwire.broker.faults import Faults, Hold, Journal, JournalEntry, Observation, On, Rule
from aiokwire.broker.options import BrokerOptions
from aiokwire.broker.security.development import PROPERTIES, Setup, new_setup, stored_setup
from aiokwire.broker.security.listeners import Listener

__all__ = [
    "PROPERTIES",
    "Broker",
    "BrokerOptions",
    "Faults",
    "Hold",
    "Journal",
    "JournalEntry",
    "Listener",
    "Observation",
    "On",
    "Rule",
    "Setup",
    "new_setup",
    "stored_setup",
]
