"""`AIOKafkaAdminClient` and its values."""

from aiokwire.compat.aiokafka.admin.client import AIOKafkaAdminClient
from aiokwire.compat.aiokafka.admin.new_partitions import NewPartitions
from aiokwire.compat.aiokafka.admin.new_topic import NewTopic
from aiokwire.compat.aiokafka.admin.records_to_delete import RecordsToDelete

__all__ = ["AIOKafkaAdminClient", "NewPartitions", "NewTopic", "RecordsToDelete"]
