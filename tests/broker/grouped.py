"""Members of groups, as raw requests without a client."""

from __future__ import annotations

from collections.abc import Sequence

from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import (
    consumer_group_heartbeat,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)
from tests.broker.raw import RawClient

SESSION_MS = 10_000
REBALANCE_MS = 20_000


class RawMember:
    """A member of the classic protocol, on its own connection."""

    def __init__(self, client: RawClient, group: str = "g", *, instance: str | None = None) -> None:
        self.client = client
        self.group = group
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.joined: join_group.JoinGroupResponse | None = None
        self.joining = False  # a JoinGroup is in flight

    @classmethod
    async def connect(
        cls, broker: Broker, group: str = "g", *, instance: str | None = None, node: int | None = None
    ) -> RawMember:
        return cls(await RawClient.connect(broker, node), group, instance=instance)

    def send_join(
        self,
        *,
        version: int = 9,
        protocols: Sequence[tuple[str, bytes]] = (("range", b"topics"),),
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        protocol_type: str = "consumer",
    ) -> None:
        self.joining = True
        self.client.send(
            join_group.JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=rebalance_ms if version >= 1 else -1,
                member_id=self.member_id,
                group_instance_id=self.instance if version >= 5 else None,
                protocol_type=protocol_type,
                protocols=[join_group.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
                reason="a test" if version >= 8 else None,
            ),
            version,
        )

    async def take_join(self, version: int = 9) -> ErrorCode:
        self.joined = await self.client.receive(join_group.JoinGroupResponse, version)
        self.joining = False
        code = ErrorCode.of(self.joined.error_code)
        if code in {ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED}:
            self.member_id = self.joined.member_id
        if code is ErrorCode.NONE:
            self.generation = self.joined.generation_id
        return code

    async def get_id(self) -> None:
        """Receive an id, as a new member does first."""
        self.send_join()
        assert await self.take_join() is ErrorCode.MEMBER_ID_REQUIRED

    @property
    def leads(self) -> bool:
        assert self.joined is not None
        return self.joined.leader == self.member_id

    def send_sync(self, assignments: dict[str, bytes] | None = None, *, version: int = 5) -> None:
        self.client.send(
            sync_group.SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance if version >= 3 else None,
                protocol_type="consumer" if version >= 5 else None,
                protocol_name="range" if version >= 5 else None,
                assignments=[
                    sync_group.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                    for member_id, assignment in (assignments or {}).items()
                ],
            ),
            version,
        )

    async def take_sync(self, version: int = 5) -> tuple[ErrorCode, bytes]:
        answer = await self.client.receive(sync_group.SyncGroupResponse, version)
        return ErrorCode.of(answer.error_code), bytes(answer.assignment)

    async def beat(self, *, version: int = 4, generation: int | None = None) -> ErrorCode:
        request = heartbeat.HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation if generation is None else generation,
            member_id=self.member_id,
            group_instance_id=self.instance if version >= 3 else None,
        )
        return ErrorCode.of((await self.client.ask(request, version)).error_code)

    async def leave(self, *, version: int = 5) -> ErrorCode:
        if version < 3:
            request = leave_group.LeaveGroupRequest(group_id=self.group, member_id=self.member_id)
            return ErrorCode.of((await self.client.ask(request, version)).error_code)
        one = leave_group.MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        answer = await self.client.ask(leave_group.LeaveGroupRequest(group_id=self.group, members=[one]), version)
        return ErrorCode.of(answer.error_code or answer.members[0].error_code)

    async def commit(self, offset: int, *, topic: str = "t", version: int = 8, epoch: int | None = None) -> ErrorCode:
        one = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = offset_commit.OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation if epoch is None else epoch,
            member_id=self.member_id,
            group_instance_id=self.instance if version >= 7 else None,
            topics=[offset_commit.OffsetCommitRequestTopic(name=topic, partitions=[one])],
        )
        return ErrorCode.of((await self.client.ask(request, version)).topics[0].partitions[0].error_code)


async def rebalance(*members: RawMember) -> None:
    """Let all members join; the leader assigns each member its index in `members`."""
    for one in members:
        one.send_join()
    for one in members:
        assert await one.take_join() is ErrorCode.NONE
    assignments = {one.member_id: b"part %d" % place for place, one in enumerate(members)}
    for one in members:
        one.send_sync(assignments if one.leads else None)
    for place, one in enumerate(members):
        assert await one.take_sync() == (ErrorCode.NONE, b"part %d" % place)


async def started(broker: Broker, count: int, group: str = "g", *, static: bool = False) -> list[RawMember]:
    """Return `count` members of a stable group."""
    members = [
        await RawMember.connect(broker, group, instance=f"i{place}" if static else None) for place in range(count)
    ]
    if not static:
        for one in members:
            await one.get_id()
    await rebalance(*members)
    return members


async def close(*members: RawMember | ConsumerProtocolMember) -> None:
    for one in members:
        await one.client.close()


Parts = dict[str, list[int]]


class ConsumerProtocolMember:
    """A member of the consumer protocol."""

    def __init__(
        self,
        broker: Broker,
        client: RawClient,
        member_id: str,
        group: str = "g",
        *,
        topics: Sequence[str] | None = ("t",),
        regex: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
    ) -> None:
        self.broker = broker
        self.client = client
        self.member_id = member_id
        self.group = group
        self.topics = topics
        self.regex = regex
        self.instance = instance
        self.assignor = assignor
        self.epoch = 0
        self.owned: Parts = {}  # by topic name; follows each assignment at once
        self._ids: dict[str, bytes] = {}  # of topics that it had, which may be gone

    async def ask(
        self, *, epoch: int, full: bool = False, owned: Parts | None = None
    ) -> consumer_group_heartbeat.ConsumerGroupHeartbeatResponse:
        """Send one heartbeat; with `full` all fields, with `owned` only the owned partitions."""
        reported = owned if owned is not None else self.owned if full else None
        return await self.client.ask(
            consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=epoch,
                instance_id=self.instance,
                rebalance_timeout_ms=REBALANCE_MS if full else -1,
                subscribed_topic_names=list(self.topics) if full and self.topics is not None else None,
                subscribed_topic_regex=self.regex if full else None,
                server_assignor=self.assignor if full else None,
                topic_partitions=None
                if reported is None
                else [
                    consumer_group_heartbeat.TopicPartitions(topic_id=self._ids[name], partitions=partitions)
                    for name, partitions in reported.items()
                ],
            ),
            1,
        )

    async def beat(self, *, join: bool = False, full: bool = False) -> ErrorCode:
        """Send a heartbeat as a client does: adopt the assignment; report it in the next one."""
        if join:
            self.owned = {}
        answer = await self.ask(epoch=0 if join else self.epoch, full=join or full, owned=self.owned)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                by_id = self.broker.state.topics.by_id
                self._ids |= {topic.name: topic.id for topic in self.broker.state.topics}
                self.owned = {
                    topic.name: sorted(one.partitions)
                    for one in answer.assignment.topic_partitions
                    if (topic := by_id(one.topic_id)) is not None
                }
        return ErrorCode.of(answer.error_code)

    async def leave(self, *, for_a_while: bool = False) -> ErrorCode:
        return ErrorCode.of((await self.ask(epoch=-2 if for_a_while else -1)).error_code)

    async def commit(self, offset: int, *, partition: int = 0, epoch: int | None = None, version: int = 9) -> ErrorCode:
        one = offset_commit.OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        request = offset_commit.OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.epoch if epoch is None else epoch,
            member_id=self.member_id,
            topics=[offset_commit.OffsetCommitRequestTopic(name="t", partitions=[one])],
        )
        return ErrorCode.of((await self.client.ask(request, version)).topics[0].partitions[0].error_code)

    async def fetch(self, *, epoch: int | None = None) -> tuple[ErrorCode, list[int]]:
        asked = offset_fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
        group = offset_fetch.OffsetFetchRequestGroup(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch if epoch is None else epoch,
            topics=[asked],
        )
        (answer,) = (await self.client.ask(offset_fetch.OffsetFetchRequest(groups=[group]), 9)).groups
        offsets = [one.committed_offset for topic in answer.topics for one in topic.partitions]
        return ErrorCode.of(answer.error_code), offsets


async def settle(*members: ConsumerProtocolMember) -> None:
    """Send heartbeats of all members until their assignments are stable."""
    while True:
        before = [(one.epoch, one.owned) for one in members]
        for one in members:
            assert await one.beat() is ErrorCode.NONE
        if before == [(one.epoch, one.owned) for one in members]:
            return
