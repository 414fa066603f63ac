"""The embedded broker: a Kafka for laptops, tests and the edge, in this process or as `aiokwire broker`.

    async with Broker("data") as broker:      # or Broker() in memory
        broker.bootstrap_servers

Requests come in through `server` and `connection`, find their way by `dispatch` to `handlers/<api>.py`, and act upon
`state`: topics, logs (`log/`), configs, producer ids, fetch sessions.
"""

from aiokwire.broker.broker import Broker

__all__ = ["Broker"]
