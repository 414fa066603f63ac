"""A member that uses the consumer protocol (KIP-848) if possible, else the classic one."""

from __future__ import annotations

from aiokwire.cluster import Client
from aiokwire.group.classic.member import ClassicMember
from aiokwire.group.commit_gate import CommitGate
from aiokwire.group.consumer_protocol.member import ConsumerProtocolMember
from aiokwire.group.consumer_protocol.states import ConsumerProtocolState
from aiokwire.group.membership import Host, MemberOptions, Membership
from aiokwire.group.status import MemberStatus
from aiokwire.types import GroupMetadata


class AutoMember:
    """A `Membership`: runs a `ConsumerProtocolMember`, or else a `ClassicMember`."""

    def __init__(self, client: Client, options: MemberOptions, host: Host, status: MemberStatus) -> None:
        self._consumer = ConsumerProtocolMember(client, options, host, status, may_fall_back=True)
        self._classic = ClassicMember(client, options, host, status)
        self.commits: CommitGate = self._classic.commits  # closed only while that member joins
        self._member: Membership = self._consumer
        self._leaving = False

    @property
    def metadata(self) -> GroupMetadata:
        """See `Membership`."""
        return self._member.metadata

    def subscribe(self, topics: frozenset[str]) -> None:
        """See `Membership`."""
        self._consumer.subscribe(topics)
        self._classic.subscribe(topics)

    def record_poll(self) -> None:
        """See `Membership`."""
        self._member.record_poll()

    def rejoin(self, reason: str) -> None:
        """See `Membership`."""
        self._member.rejoin(reason)

    def refused(self, code: int, group: GroupMetadata) -> bool:
        """See `Membership`."""
        return self._member.refused(code, group)

    async def run(self) -> None:
        """See `Membership`."""
        await self._consumer.run()
        if self._consumer.state is ConsumerProtocolState.UNSERVED and not self._leaving:
            self._member = self._classic
            await self._classic.run()

    async def leave(self, timeout: float, *, reason: str) -> None:
        """See `Membership`."""
        self._leaving = True
        await self._member.leave(timeout, reason=reason)
