"""Regular expressions of clients, matched in linear time: RE2's syntax and semantics, like Kafka.

Python's `re` backtracks: a pattern of eight characters and a name of forty can take hours. Patterns
of clients run on an automaton instead; Python's syntax beyond RE2's (look-around, back-references)
is rejected. Not `google-re2`, so that the broker needs no further compiled package.
"""

from aiokwire.broker.patterns.matcher import Budget, Pattern, PatternTooExpensive
from aiokwire.broker.patterns.syntax import InvalidPattern

__all__ = ["Budget", "InvalidPattern", "Pattern", "PatternTooExpensive"]
