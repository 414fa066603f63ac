"""Every topic of the broker, kept in one file of the data directory.

A topic exists if the file (`aiokwire-topics.json`) names it; it is written before a topic is
reported as created, or its partitions deleted. Partition directories without an entry, as Kafka
wrote them, are adopted: `adoption` decides with which configs. Handlers use `BrokerState.topics`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter

import anyio

from aiokwire.broker.adoption import (
    INTERNAL,
    FoundTopic,
    is_broker_hold_over,
    log_adoption,
    plan_adoption,
    without_broker_hold,
    without_hold,
)
from aiokwire.broker.cluster_metadata import METADATA_TOPIC, ClusterMetadata, read_cluster_metadata
from aiokwire.broker.configs import BrokerConfigs
from aiokwire.broker.log import LogManager, PartitionLog, Storage, write_atomically
from aiokwire.broker.topics import Partition, Topic, name_fault
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, CorruptRecord, StorageError, error_for
from aiokwire.threads import run_in_thread

FILE = "aiokwire-topics.json"
MADE_AT_ONCE = 32  # partitions; a thread creates the files of more
DELETED_TOGETHER = 200  # partitions whose files are closed in one turn of the loop


class TopicRegistry:
    """Every topic of the broker. Changes take effect at once; `save` stores them."""

    def __init__(
        self,
        storage: Storage,
        logs: LogManager,
        configs: BrokerConfigs,
        rng: random.Random,
        *,
        place: Callable[[int], int] | None = None,
    ) -> None:
        """`place` returns the leader of a new partition by number; without it there is one node."""
        self._storage = storage
        self._logs = logs
        self._configs = configs
        self._rng = rng
        self._place = place or (lambda index: configs.node_id)
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._deleting: set[bytes] = set()  # ids whose partitions are being deleted, until the next save
        self._leaving: set[str] = set()  # names whose partitions are not all deleted yet
        self._held: set[str] = set()  # adopted topics that keep all records; "" for the broker's default
        self.next_producer_id: int = 0  # above every id that Kafka may have allocated in an adopted directory
        self._creating: set[str] = set()  # names whose partitions a thread creates
        self._has_file = False  # a broker of this kind has used the directory before
        self._unregistered: list[PartitionLog] = []  # with topic ids that are not in the file yet
        self._version = 0  # of the topics in memory
        self._saved = 0  # of the file
        self._saving: anyio.Lock | None = None  # created at first use: it belongs to a running loop

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        """Topics by name."""
        return iter(sorted(self._by_name.values(), key=attrgetter("name")))

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        return self._by_id.get(topic_id)

    @property
    def version(self) -> int:
        """Rises with every change of a topic, for caches of values computed from topics."""
        return self._version

    def partition(self, name: str, index: int) -> Partition | None:
        topic = self._by_name.get(name)
        return topic.partition(index) if topic is not None else None

    # --- the file -----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read the file, restore its topics, and adopt partitions that it does not name.

        Raises: StorageError: the file is corrupt or cannot be read.
        """
        content = self._storage.read(FILE)
        self._has_file = content is not None
        try:
            known = json.loads(content) if content is not None else {"topics": {}}
            self._deleting = {bytes.fromhex(one) for one in known.get("deleting", ())}
            self._held = {str(name) for name in known.get("held", ())}
            self.next_producer_id = int(known.get("next_producer_id", 0))
            for name, values in known.get("brokers", {}).items():
                self._configs.set_dynamic(str(name), dict(values))
            for name, values in known.get("client_metrics", {}).items():
                self._configs.client_metrics[str(name)] = dict(values)
            topics = {
                str(name): (bytes.fromhex(entry["id"]), int(entry["partitions"]), dict(entry["configs"]))
                for name, entry in known["topics"].items()
                if name != METADATA_TOPIC
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StorageError(f"{FILE} in the data directory is corrupt: {error!r}") from error
        self._end_deletions()
        self._end_broker_hold()
        for name, (topic_id, count, configs) in topics.items():
            self._add(Topic(name, topic_id, configs), count)
        self._note_registered(self._unregistered)
        self._unregistered = []
        self._adopt()

    def read_ids(self) -> dict[str, bytes]:
        """Return the ids of the topics in the file, none if it is missing or corrupt."""
        try:
            known = json.loads(self._storage.read(FILE) or b"{}")
            return {str(name): bytes.fromhex(entry["id"]) for name, entry in known.get("topics", {}).items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            return {}  # `load` reports it

    @staticmethod
    def _note_registered(logs: Iterable[PartitionLog]) -> None:
        for log in logs:
            log.note_registered()

    def _end_deletions(self) -> None:
        """Finish deletions that the broker did not finish before it stopped."""
        if not self._deleting:
            return
        for key, log in list(self._logs.logs.items()):
            if log.topic_id in self._deleting:
                self._logs.delete(key.topic, key.partition, wall_ms())
        self._logs.checkpoint()
        self._deleting.clear()

    def _adopt(self) -> None:
        """Adopt the partitions that the file does not name.

        Raises: StorageError.
        """
        found: dict[str, dict[int, bytes]] = {}
        foreign: set[str] = set()  # not being created by this broker when it was killed
        for key, log in self._logs.logs.items():
            if key.topic not in self._by_name:
                found.setdefault(key.topic, {})[key.partition] = log.topic_id
                if log.end_offset > 0 or not self._has_file:
                    foreign.add(key.topic)
        if not found:
            return
        metadata, reason = self._read_cluster_metadata()
        adoption = plan_adoption(
            [FoundTopic(name, ids, is_foreign=name in foreign) for name, ids in found.items()],
            metadata,
            self._configs.static,
        )
        for broker, values in adoption.broker_configs.items():
            self._configs.set_dynamic(broker, {**values, **self._configs.dynamic.get(broker, {})})
        self.next_producer_id = max(self.next_producer_id, adoption.next_producer_id)
        self._logs.raise_leader_epoch(adoption.leader_epoch)
        for topic in adoption.topics:
            self._add(Topic(topic.name, topic.id or self._new_id(), topic.configs), topic.partitions)
        self._held |= {topic.name for topic in adoption.topics if topic.is_held}
        self._held |= {""} if adoption.is_broker_held else set()
        self._version += 1
        log_adoption(adoption, reason)

    def _read_cluster_metadata(self) -> tuple[ClusterMetadata | None, str]:
        """Return Kafka's metadata, or None and the reason."""
        try:
            metadata = read_cluster_metadata(self._storage)
        except CorruptRecord as error:
            return None, f"Kafka's metadata log cannot be read: {error}"
        missing = f"{METADATA_TOPIC}-0, Kafka's metadata log, is not in the data directory"
        return metadata, "not in Kafka's metadata log" if metadata is not None else missing

    def _end_broker_hold(self) -> None:
        if "" in self._held and is_broker_hold_over(self._configs.dynamic.get("", {}), self._configs.static):
            self._release_broker()

    def _release_broker(self) -> None:
        self._configs.set_dynamic("", without_broker_hold(self._configs.dynamic.get("", {})))
        self._held.discard("")
        self._version += 1

    def apply_retention(self) -> list[str]:
        """End the hold on adopted topics: retention and compaction apply. Return their names."""
        if "" in self._held:
            self._release_broker()
        released = sorted(self._held & self._by_name.keys())
        self._held.clear()
        for topic in self:
            if topic.name in released:
                self.set_configs(topic, without_hold(topic.configs))
            else:
                topic.apply(self._configs)
        return released

    def _encode(self) -> bytes:
        state = {
            "version": 1,
            "topics": {
                topic.name: {"id": topic.id.hex(), "partitions": len(topic.partitions), "configs": topic.configs}
                for topic in self
            },
            "brokers": self._configs.dynamic,
            "client_metrics": self._configs.client_metrics,
            "held": sorted(self._held),
            "next_producer_id": self.next_producer_id,
            "deleting": sorted(one.hex() for one in self._deleting),
        }
        return json.dumps(state, indent=1).encode()

    async def save(self) -> None:
        """Write the file if a topic changed since it was written.

        Raises: StorageError: it cannot be written; changes are in force but lost at the next start.
        """
        wanted = self._version
        if self._saving is None:
            self._saving = anyio.Lock()
        async with self._saving:
            if self._saved >= wanted:
                return
            version, content = self._version, self._encode()
            logs, self._unregistered = self._unregistered, []
            try:
                await run_in_thread(write_atomically, self._storage, FILE, content)
            except BaseException:
                self._unregistered += logs
                raise
            self._note_registered(logs)
            self._saved = version

    # --- changes ------------------------------------------------------------------------------------------------------

    def create(self, name: str, partitions: int, configs: Mapping[str, str]) -> Topic:
        """Create a topic; the caller has checked the configs.

        Raises: BrokerError: the name is taken, illegal or internal. StorageError: writing failed.
        """
        self.check_new(name)
        return self._create(name, partitions, configs)

    async def create_in_thread(self, name: str, partitions: int, configs: Mapping[str, str]) -> Topic:
        """Create a topic without blocking the loop, however many partitions it has.

        Raises: as `create`.
        """
        if partitions <= MADE_AT_ONCE:
            return self.create(name, partitions, configs)
        self.check_new(name)
        topic = Topic(name, self._new_id(), configs)
        topic.apply(self._configs)
        self._creating.add(name)
        try:
            await self._make_partitions(topic, range(partitions))
        finally:
            self._creating.discard(name)
        self._add(topic, partitions)
        self._version += 1
        return topic

    async def _make_partitions(self, topic: Topic, indexes: Iterable[int]) -> None:
        """Create partitions in a thread; the loop only chooses their leaders."""

        def make() -> list[PartitionLog]:
            return self._logs.build(topic.name, indexes, topic.id, wall_ms(), topic.log_config)

        with anyio.CancelScope(shield=True):  # the thread creates the files in any case
            logs = await run_in_thread(make)
        self._logs.add(*logs)
        self._unregistered += logs
        epoch = self._logs.leader_epoch
        for log in logs:
            topic.partitions.append(Partition(topic, log.partition, log, self._place(log.partition), epoch))

    def create_internal(self, name: str, partitions: int, configs: Mapping[str, str]) -> Topic:
        """Create an internal topic, in which a coordinator keeps its state.

        Raises: StorageError: it cannot be stored, or a topic of that name is being deleted.
        """
        if name in self._leaving:
            raise StorageError(_still_there(name))
        return self._create(name, partitions, configs)

    def _create(self, name: str, partitions: int, configs: Mapping[str, str]) -> Topic:
        topic = Topic(name, self._new_id(), configs)
        try:
            self._add(topic, partitions)
        except StorageError:
            self._drop(topic)
            raise
        self._version += 1
        return topic

    def check_new(self, name: str) -> None:
        """Check that a topic of this name may be created.

        Raises: BrokerError: the name is taken, illegal, internal, or collides with another one.
        """
        fault = name_fault(name)
        if fault is not None:
            raise BrokerError(fault, code=ErrorCode.INVALID_TOPIC_EXCEPTION, topic=name)
        if name in INTERNAL:
            raise BrokerError(
                f"{name} is an internal topic of the broker, which creates it itself",
                code=ErrorCode.INVALID_TOPIC_EXCEPTION,
                topic=name,
            )
        if name in self._by_name or name in self._creating:
            raise BrokerError(f"Topic '{name}' already exists.", code=ErrorCode.TOPIC_ALREADY_EXISTS, topic=name)
        if name in self._leaving:
            raise BrokerError(_still_there(name), code=ErrorCode.TOPIC_ALREADY_EXISTS, topic=name)
        # Kafka's metrics replace dots by underscores: two such names would collide there.
        if "." in name or "_" in name:
            flat = name.replace(".", "_")
            for other in self._by_name.keys() | self._creating:
                if other.replace(".", "_") == flat:
                    raise BrokerError(
                        f"topic '{name}' collides with '{other}': they differ in '.' and '_' only",
                        code=ErrorCode.INVALID_TOPIC_EXCEPTION,
                        topic=name,
                    )

    def _new_id(self) -> bytes:
        return self._rng.getrandbits(128).to_bytes(16, "big")

    def _add(self, topic: Topic, count: int) -> None:
        self._by_name[topic.name] = topic
        self._by_id[topic.id] = topic
        topic.apply(self._configs)
        self._extend(topic, count)

    def _extend(self, topic: Topic, count: int) -> None:
        now = wall_ms()
        for index in range(len(topic.partitions), count):
            log = self._logs.get(topic.name, index)
            if log is None:
                log = self._logs.create(topic.name, index, topic.id, now, topic.log_config)
            log.configure(topic.log_config)
            if log.metadata_to_sync is not None:
                self._unregistered.append(log)
            epoch = max(self._logs.leader_epoch, log.leader_epochs.latest)
            topic.partitions.append(Partition(topic, index, log, self._place(index), epoch))

    def add_partitions(self, topic: Topic, count: int) -> None:
        """Add partitions up to `count`.

        Raises: StorageError: they cannot be stored.
        """
        self._extend(topic, count)
        self._version += 1

    async def add_partitions_in_thread(self, topic: Topic, count: int) -> None:
        """Add partitions up to `count` without blocking the loop, however many they are.

        Raises: StorageError: they cannot be stored. BrokerError: a request is adding partitions.
        """
        have = len(topic.partitions)
        if topic.name in self._creating:
            raise error_for(ErrorCode.INVALID_PARTITIONS, f"partitions of {topic.name!r}", topic=topic.name)
        if count - have > MADE_AT_ONCE:
            self._creating.add(topic.name)
            try:
                await self._make_partitions(topic, range(have, count))
            finally:
                self._creating.discard(topic.name)
        self.add_partitions(topic, count)

    async def delete(self, topic: Topic) -> None:
        """Delete a topic; its files are deleted later.

        Its name is free once its directories are renamed and checkpoints written without it: else a
        new topic would continue old logs, or lose records to the old offsets at the next start.

        Raises: StorageError: the deletion failed. If it could not be stored, the topic remains.
        """
        self._drop_names(topic)
        self._leaving.add(topic.name)
        self._deleting.add(topic.id)
        self._version += 1
        try:
            await self.save()
        except StorageError:
            self._bring_back(topic)
            raise
        with anyio.CancelScope(shield=True):  # otherwise the name would be taken until the next start
            for start in range(0, len(topic.partitions), DELETED_TOGETHER):
                indexes = [partition.index for partition in topic.partitions[start : start + DELETED_TOGETHER]]
                work = self._logs.prepare_delete(topic.name, indexes, wall_ms())
                await run_in_thread(work.run)
                work.finish()
            await run_in_thread(self._logs.prepare_checkpoint().run)
        self._leaving.discard(topic.name)
        self._deleting.discard(topic.id)  # the next save removes it

    def _bring_back(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        self._by_id[topic.id] = topic
        topic.set_deleted(False)
        self._leaving.discard(topic.name)
        self._deleting.discard(topic.id)
        self._version += 1

    def _drop_names(self, topic: Topic) -> None:
        self._by_name.pop(topic.name, None)
        self._by_id.pop(topic.id, None)
        topic.set_deleted(True)

    def _drop(self, topic: Topic) -> None:
        self._drop_names(topic)
        for partition in topic.partitions:
            self._logs.delete(topic.name, partition.index, wall_ms())

    def set_configs(self, topic: Topic, configs: Mapping[str, str]) -> None:
        """Replace a topic's own configs; the caller has checked them."""
        topic.apply(self._configs, overrides=configs)
        self._version += 1

    def set_broker_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace the dynamic configs of one broker, or of all brokers for an empty name."""
        self._configs.set_dynamic(name, configs)
        for topic in self:
            topic.apply(self._configs)
        self._version += 1

    def set_client_metrics(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace a subscription to metrics of clients; one without configs is removed."""
        self._configs.client_metrics.pop(name, None)
        if configs:
            self._configs.client_metrics[name] = dict(configs)
        self._version += 1

    def require(self, name: str) -> Topic:
        """Return the topic of that name.

        Raises: BrokerError: it does not exist.
        """
        topic = self._by_name.get(name)
        if topic is None:
            raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r}", topic=name)
        return topic


def _still_there(name: str) -> str:
    return f"topic '{name}' is being deleted"
