"""`AIOKafkaConsumer`."""

from aiokwire.compat.aiokafka.consumer.consumer import AIOKafkaConsumer

__all__ = ["AIOKafkaConsumer"]
