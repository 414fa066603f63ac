"""The producer: records into batches, batches to the brokers that lead their partitions.

producer    what programs use                 core        the parts of one producer, wired
                                              scheduler   which batch leaves when
_accumulator, _delivery  per record, compiled sender     one per broker: requests
config      its options                       batch_results  acknowledge, retry, split or fail batches
partitioner which partition                   buffer_pool who waits for room
bulk        send_many; arrow: send_arrow      topics      partitions, leaders, message formats
idempotence producer id, epochs, sequences    planning, responses  the decisions, as plain functions
serialization  serializers, on_send           hooks       hooks per batch
transactions/  the block, the driver, the requests to coordinators
health, events  how it is now, and what happens
"""

from aiokwire.producer._delivery import Delivery
from aiokwire.producer.arrow import ArrowDelivery
from aiokwire.producer.bulk import ProducerRecord, SendManyResult
from aiokwire.producer.closing import Undelivered
from aiokwire.producer.config import ProducerConfig, Serializer
from aiokwire.producer.events import (
    BatchFailed,
    BufferFree,
    BufferFull,
    LeadersChanged,
    ProducerEvent,
    ProducerFailed,
    ProducerIdChanged,
    TransactionAbortRequired,
)
from aiokwire.producer.health import ProducerHealth
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
