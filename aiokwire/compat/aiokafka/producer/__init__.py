"""`AIOKafkaProducer`."""

from aiokwire.compat.aiokafka.producer.producer import AIOKafkaProducer

__all__ = ["AIOKafkaProducer"]
