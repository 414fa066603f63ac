"""The producer: records into batches, batches to the leaders of their partitions.

producer     the public class                    core         the parts of one producer, wired
_accumulator, _delivery  per record, compiled    scheduler    when batches are sealed and sent
config       the options                         sender       one per broker: Produce requests
partitioner  the choice of partitions            batch_results  acknowledge, retry, split or fail
bulk         send_many, send_arrow               buffer_pool  the records that wait for room
idempotence  producer id, epochs, sequences      topics       partitions, leaders, message formats
serialization  serializers, on_send              planning, responses  decisions, as plain functions
events       events and health                   hooks        hooks per batch
metrics      counts per batch
transactions/  the block, the driver, the requests to coordinators
"""

from aiokwire.producer._delivery import Delivery
from aiokwire.producer.bulk import ArrowDelivery, ProducerRecord, SendManyResult
from aiokwire.producer.closing import Undelivered
from aiokwire.producer.config import ProducerConfig, ProducerOptions, Serializer
from aiokwire.producer.events import (
    BatchFailed,
    BufferFree,
    BufferFull,
    LeadersChanged,
    ProducerEvent,
    ProducerFailed,
    ProducerHealth,
    ProducerIdChanged,
    TransactionAbortRequired,
)
from aiokwire.producer.partitioner import Partitioner, RoundRobin, partition_for_key
from aiokwire.producer.producer import Producer
from aiokwire.producer.transactions.block import Transaction
from aiokwire.producer.transactions.shared import SharedTransactions, TransactionTicket

__all__ = [
    "ArrowDelivery",
    "BatchFailed",
    "BufferFree",
    "BufferFull",
    "Delivery",
    "LeadersChanged",
    "Partitioner",
    "Producer",
    "ProducerConfig",
    "ProducerEvent",
    "ProducerFailed",
    "ProducerHealth",
    "ProducerIdChanged",
    "ProducerOptions",
    "ProducerRecord",
    "RoundRobin",
    "SendManyResult",
    "Serializer",
    "SharedTransactions",
    "Transaction",
    "TransactionAbortRequired",
    "TransactionTicket",
    "Undelivered",
    "partition_for_key",
]
