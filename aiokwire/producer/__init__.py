"""The producer: records into batches, batches to the brokers that lead their partitions.

producer    what programs use                 dispatcher  which batch goes where, and when
_accumulator, _delivery  per record, compiled sender     one per broker: requests
config      its options                       settlement  what becomes of batches
partitioner which partition                   buffer_pool who waits for room
bulk        send_many; arrow: send_arrow      topics      partitions, leaders, message formats
idempotence producer id, epochs, sequences    planning, responses  the decisions, as plain functions
scope, transaction, steps  transactions: the block, the driver, the talk with coordinators; states, outcomes and
                           transaction_requests are its tables and messages; shared: one of many producers
preparing   serializers, on_send              plug        hooks per batch
health, events  how it is now, and what happens
"""

from aiokwire.producer._delivery import Delivery
from aiokwire.producer.arrow import ArrowDelivery
from aiokwire.producer.bulk import ProducerRecord, SendManyResult
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
from aiokwire.producer.scope import Transaction
from aiokwire.producer.settlement import Undelivered
from aiokwire.producer.shared import SharedTransactions, TransactionTicket

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
