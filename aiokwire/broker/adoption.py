"""Decides how topics of a directory that Kafka wrote are adopted: ids, partitions and configs.

Configs come from Kafka's own metadata (`cluster_metadata`). If it cannot be read, a topic is
*held*: its configs keep every record until an operator changes them or starts the broker with
`apply_retention`. Pure functions, used by `TopicRegistry`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from aiokwire._text import printable
from aiokwire.broker.cluster_metadata import METADATA_TOPIC, ClusterMetadata, KafkaTopic
from aiokwire.broker.config_table import SYNONYMS
from aiokwire.broker.configs import broker_keys, topic_keys
from aiokwire.errors import ConfigurationError

logger: logging.Logger = logging.getLogger(__name__)

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", METADATA_TOPIC})
HELD = {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": "-1"}
_HELD_BROKER_CONFIG = "log.retention.ms"
_RETENTION_TIMES = frozenset(name for name, _ in SYNONYMS["retention.ms"])
_TOPIC_DEFAULTS = frozenset(name for synonyms in SYNONYMS.values() for name, _ in synonyms)
_SHOWN = 10  # names in one log line


class FoundTopic(NamedTuple):
    """The directories of one topic, with the topic id in each, by partition."""

    name: str
    ids: Mapping[int, bytes]
    is_foreign: bool = True  # False: this broker was killed while it created the topic; there are no records


class AdoptedTopic(NamedTuple):
    """A topic that the registry is to create."""

    name: str
    id: bytes | None  # None: no directory names it
    partitions: int
    configs: dict[str, str]
    is_held: bool


class Adoption(NamedTuple):
    """The topics, configs, epochs and ids that the registry adopts from a directory of Kafka."""

    topics: list[AdoptedTopic]
    broker_configs: dict[str, dict[str, str]]
    leader_epoch: int  # the highest that clients may have seen
    next_producer_id: int
    is_broker_held: bool  # the broker's default retention is unlimited until the operator sets one


def plan_adoption(found: Iterable[FoundTopic], metadata: ClusterMetadata | None, operator: Collection[str]) -> Adoption:
    """Decide how to adopt the topics found; `operator` names broker configs given at the start."""
    known = metadata.topics if metadata is not None else {}
    topics = [_adopt(one, known.get(one.name)) for one in found]
    broker_configs = _broker_configs(metadata)
    given = {*operator, *(name for configs in broker_configs.values() for name in configs)}
    is_unknown = _RETENTION_TIMES.isdisjoint(given) and any(_uses_broker_retention(topic) for topic in topics)
    if is_unknown:
        broker_configs.setdefault("", {})[_HELD_BROKER_CONFIG] = "-1"
    return Adoption(
        topics,
        broker_configs,
        max((epoch for topic in known.values() for epoch in topic.leader_epochs.values()), default=-1),
        metadata.next_producer_id if metadata is not None else 0,
        is_unknown,
    )


def _adopt(found: FoundTopic, known: KafkaTopic | None) -> AdoptedTopic:
    topic_id = next((one for one in found.ids.values() if any(one)), None)
    partitions = max(found.ids) + 1
    # Not in the metadata, or an earlier topic of that name.
    if known is None or (topic_id is not None and topic_id != known.id):
        is_held = found.is_foreign and found.name not in (
            "__consumer_offsets",
            "__transaction_state",
        )  # their coordinators know the configs
        return AdoptedTopic(found.name, topic_id, partitions, dict(HELD) if is_held else {}, is_held)
    return AdoptedTopic(
        found.name, known.id, max(partitions, known.partitions), _sound(found.name, known.configs), False
    )


def _sound(topic: str, configs: Mapping[str, str]) -> dict[str, str]:
    """Return the topic's configs that this broker has and can parse; warn about others."""
    sound = {}
    for name, value in configs.items():
        key = topic_keys().get(name)
        try:
            if key is None:
                raise ConfigurationError("this broker has no such config")
            key.parse(value)
        except ConfigurationError as error:
            shown = printable(f"{name}={value}")
            logger.warning("topic %s: config %s, set in Kafka, was not adopted: %s", topic, shown, error)
            if name in HELD:
                sound[name] = HELD[name]
        else:
            sound[name] = value
    return sound


def _broker_configs(metadata: ClusterMetadata | None) -> dict[str, dict[str, str]]:
    """Return the dynamic broker configs that topics take their defaults from."""
    adopted = {}
    for broker, configs in (metadata.broker_configs if metadata is not None else {}).items():
        usable = {name: value for name, value in configs.items() if name in _TOPIC_DEFAULTS and _is_valid(name, value)}
        if usable:
            adopted[broker] = usable
    return adopted


def _is_valid(name: str, value: str) -> bool:
    try:
        broker_keys()[name].parse(value)
    except ConfigurationError:
        return False
    return True


def _uses_broker_retention(topic: AdoptedTopic) -> bool:
    deletes = "delete" in topic.configs.get("cleanup.policy", "delete")
    return not topic.is_held and topic.name not in INTERNAL and deletes and "retention.ms" not in topic.configs


def is_broker_hold_over(configs: Mapping[str, str], operator: Collection[str]) -> bool:
    """Return whether the operator has since set a default retention."""
    return configs.get(_HELD_BROKER_CONFIG) != "-1" or not _RETENTION_TIMES.isdisjoint(operator)


def without_hold(configs: Mapping[str, str]) -> dict[str, str]:
    """Return a held topic's configs without those that hold it."""
    return {name: value for name, value in configs.items() if HELD.get(name) != value}


def without_broker_hold(configs: Mapping[str, str]) -> dict[str, str]:
    """Return the configs of all brokers without the one that holds the default retention."""
    return {name: value for name, value in configs.items() if (name, value) != (_HELD_BROKER_CONFIG, "-1")}


def log_adoption(adoption: Adoption, reason: str) -> None:
    """Log one line per group of topics; `reason` explains why some configs are not known."""
    known = [topic.name for topic in adoption.topics if not topic.is_held and topic.name not in INTERNAL]
    held = [topic.name for topic in adoption.topics if topic.is_held]
    if known:
        logger.info("adopted %d topics that Kafka wrote, with their configs: %s", len(known), _listed(known))
    if held:
        logger.warning(
            "adopted %d topics without their configs (%s): %s. Nothing in them is deleted or compacted "
            "(cleanup.policy=delete, retention.ms=-1, retention.bytes=-1) until you change these configs, or start the "
            "broker with apply_retention=True (--apply-retention)",
            len(held),
            reason,
            _listed(held),
        )
    if adoption.is_broker_held:
        default = [topic.name for topic in adoption.topics if _uses_broker_retention(topic)]
        logger.warning(
            "%d adopted topics have no retention.ms of their own, and Kafka's server.properties is not known: %s. "
            "Records are kept by default (log.retention.ms=-1) until you set log.retention.ms, .minutes or .hours, or "
            "start the broker with apply_retention=True (--apply-retention)",
            len(default),
            _listed(default),
        )


def _listed(names: list[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(sorted(names)[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
