"""A member of a group that uses the consumer protocol (KIP-848): ConsumerGroupHeartbeat alone.

member      one coroutine per state
states      state table
decisions   meaning of error codes, revoked and added partitions
requests    requests in all versions
"""
