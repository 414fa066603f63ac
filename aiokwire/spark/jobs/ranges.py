"""The input of a job in fixed offsets, because Spark would look offsets up again for each action.

Used by `audit` and `sql`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final

from aiokwire.admin import AdminConfig
from aiokwire.cluster import LATEST, Client, list_offsets
from aiokwire.consumer import ConsumerConfig
from aiokwire.spark.offsets import to_json
from aiokwire.spark.options import SourceOptions
from aiokwire.spark.source import planning
from aiokwire.spark.source.batch import on_loss
from aiokwire.spark.source.lookup import Lookup
from aiokwire.types import IsolationLevel, TopicPartition

# Options for where to read, replaced by offsets.
_PLACES: Final = frozenset({
    "startingoffsets", "endingoffsets", "startingtimestamp", "endingtimestamp", "startingoffsetsbytimestamp",
    "endingoffsetsbytimestamp", "startingoffsetsbytimestampstrategy",
})  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Scope:
    """The input in fixed offsets, and the state of the logs at the lookup."""

    start: Mapping[TopicPartition, int]
    end: Mapping[TopicPartition, int]
    earliest: Mapping[TopicPartition, int]
    """The start of each log."""
    stable: Mapping[TopicPartition, int]
    """The last stable offset of each log."""
    latest: Mapping[TopicPartition, int]
    """The end of each log."""
    topic_ids: Mapping[str, bytes]

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted({tp.topic for tp in self.end}))

    @property
    def size(self) -> int:
        """The count of offsets."""
        return planning.lag(self.start, self.end)


async def find_scope(client: Client, options: SourceOptions) -> Scope:
    """Look up the offsets once.

    Raises: ConfigurationError: a topic does not exist; LostData: offsets that the options name are
        gone.
    """
    lookup = Lookup(client, options)
    partitions, topic_ids = await lookup.partitions()
    earliest = await lookup.earliest(partitions)
    stable = await lookup.latest(partitions)
    # Looked up last, so that no log seems to end before its last stable offset.
    times = dict.fromkeys(partitions, LATEST)
    isolation, timeout = IsolationLevel.READ_UNCOMMITTED, options.consumer.default_api_timeout
    ends = await list_offsets(client, times, isolation=isolation, timeout=timeout)
    start = await lookup.resolve(options.start, partitions, earliest, stable, is_end=False)
    end = await lookup.resolve(options.end, partitions, earliest, stable, is_end=True)
    start, lost = planning.without_lost(start, earliest, stable)
    end, cut_off = planning.until_end(end, stable)
    on_loss(lost + cut_off, options.on_data_loss)
    start = {tp: min(start[tp], end[tp]) for tp in partitions}
    return Scope(start, end, earliest, stable, {tp: found.offset for tp, found in ends.items()}, topic_ids)


def explicit(options: Mapping[str, str], scope: Scope) -> dict[str, str]:
    """Return the options with fixed offsets, so that Spark's actions do not look them up again."""
    kept = {name: text for name, text in options.items() if name.lower() not in _PLACES}
    return kept | {
        "startingOffsets": json.dumps(to_json(scope.start)),
        "endingOffsets": json.dumps(to_json(scope.end)),
    }


def admin_options(config: ConsumerConfig) -> dict[str, Any]:
    """Return the consumer's options that the admin client shares: addresses, timeouts, retries."""
    names = {field.name for field in dataclasses.fields(AdminConfig) if field.init}
    return {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if field.init and field.name in names
    }
