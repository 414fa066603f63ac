"""The embedded broker: a Kafka for laptops, tests and the edge, in this process or as `aiokwire broker`.

    async with Broker("data") as broker:      # or Broker() in memory
        broker.bootstrap_servers

Requests come in through `server` and `connection`, find their way by `dispatch` to `handlers/<api>.py`, and act upon
`state`: topics, logs (`log/`), configs, producer ids, nodes. Tests let it misbehave (`controls`, `control`, `journal`;
public as `aiokwire.testing`).
"""

from aiokwire.broker.broker import Broker
from aiokwire.broker.faults.journal import Journal, JournalEntry
from aiokwire.broker.faults.rules import Hold, Observation, On, Rule
from aiokwire.broker.options import BrokerOptions

__all__ = ["Broker", "BrokerOptions", "Hold", "Journal", "JournalEntry", "Observation", "On", "Rule"]
