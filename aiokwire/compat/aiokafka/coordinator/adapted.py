"""aiokafka's assignors as ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aiokwire.compat.aiokafka.client import AIOKafkaClient
from aiokwire.compat.aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokwire.compat.aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokwire.compat.aiokafka.coordinator.assignors.shared import assignment_of
from aiokwire.compat.aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokwire.compat.aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokwire.group import Assignor, MemberSubscription, PartitionInfo
from aiokwire.types import TopicPartition

# Ours are used in place of these, without the way through aiokafka's values.
_OURS: Final = (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor)


def assignors_of(given: Sequence[Any], client: AIOKafkaClient) -> list[str | Assignor]:
    """Return our assignors for aiokafka's classes or objects.

    Raises: ValueError: there is none.
    """
    if not given:
        raise ValueError("partition_assignment_strategy must name at least one assignor")
    return [each.name if each in _OURS else AdaptedAssignor(each, client) for each in given]


class AdaptedAssignor:
    """An application's assignor. All of aiokafka's are eager."""

    cooperative: Final = False

    def __init__(self, assignor: Any, client: AIOKafkaClient) -> None:
        self._assignor = assignor
        self._client = client

    @property
    def name(self) -> str:
        """See `Assignor`."""
        return str(self._assignor.name)

    def user_data(self, topics: Iterable[str]) -> bytes:
        """See `Assignor`."""
        data: bytes | None = self._assignor.metadata(set(topics)).user_data
        return data or b""

    def assign(
        self, members: Mapping[str, MemberSubscription], partitions: Mapping[str, Sequence[PartitionInfo]]
    ) -> dict[str, list[TopicPartition]]:
        """See `Assignor`."""
        theirs = {
            member_id: ConsumerProtocolMemberMetadata(0, each.topics, each.user_data)
            for member_id, each in members.items()
        }
        chosen = self._assignor.assign(self._client.cluster, theirs)
        return {member_id: list(each.partitions()) for member_id, each in chosen.items()}

    def on_assignment(self, partitions: Iterable[TopicPartition], generation: int) -> None:
        """See `Assignor`."""
        self._assignor.on_assignment(assignment_of(0, partitions))
        on_generation = getattr(self._assignor, "on_generation_assignment", None)
        if on_generation is not None:
            on_generation(generation)
