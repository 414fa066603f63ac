"""The public interface of aiokafka 0.14 on aiokwire's clients.

consumer/, producer/, admin/, client, cluster  the classes     options  aiokafka's options as ours
structs, abc, errors, helpers, partitioner, util  names that applications import
coordinator/  assignors       replace, __main__  runs a program with this in place of aiokafka

`from aiokwire.compat import aiokafka`, or without a change of the program:
`python -m aiokwire.compat.aiokafka run program.py`.
"""

from aiokwire.compat.aiokafka._version import __version__
from aiokwire.compat.aiokafka.abc import ConsumerRebalanceListener
from aiokwire.compat.aiokafka.client import AIOKafkaClient
from aiokwire.compat.aiokafka.consumer import AIOKafkaConsumer
from aiokwire.compat.aiokafka.errors import ConsumerStoppedError, IllegalOperation
from aiokwire.compat.aiokafka.producer import AIOKafkaProducer
from aiokwire.compat.aiokafka.structs import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

__all__ = [
    "AIOKafkaClient",
    "AIOKafkaConsumer",
    "AIOKafkaProducer",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerStoppedError",
    "IllegalOperation",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "TopicPartition",
    "__version__",
]
