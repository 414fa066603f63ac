"""The interfaces of other Kafka clients, on this one.

aiokafka  the public interface of aiokafka 0.14
"""

__all__: list[str] = []
