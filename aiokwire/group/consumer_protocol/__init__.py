"""A member of a group that uses the consumer protocol (KIP-848): ConsumerGroupHeartbeat alone.

member       the driver: one coroutine per state        states           the table
decisions    what error codes mean; partitions          requests         bytes of the requests
topic_names  names of topics that are assigned by id
"""
