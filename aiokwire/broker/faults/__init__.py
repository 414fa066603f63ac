"""Faults on demand for tests: `Broker.faults`, rules, the journal. Public as `aiokwire.testing`.

api            Broker.faults: rules, leaders, coordinators, groups, nodes
rules          rules for requests, and the interceptor that applies them
journal        the last requests received
"""

from aiokwire.broker.faults.api import Faults, Serving
from aiokwire.broker.faults.journal import Journal, JournalEntry
from aiokwire.broker.faults.rules import Hold, Interceptor, Observation, On, Rule

__all__ = ["Faults", "Hold", "Interceptor", "Journal", "JournalEntry", "Observation", "On", "Rule", "Serving"]
