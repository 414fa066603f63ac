"""Names of OpenTelemetry's semantic conventions for messaging, as constants.

A test compares them with the package `opentelemetry-semantic-conventions`, which is not needed at
run time: its messaging names are in a module whose name begins with an underscore.
"""

from __future__ import annotations

from typing import Final

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"

SYSTEM: Final = "messaging.system"
OPERATION_NAME: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
DESTINATION: Final = "messaging.destination.name"
PARTITION: Final = "messaging.destination.partition.id"
GROUP: Final = "messaging.consumer.group.name"
CLIENT_ID: Final = "messaging.client.id"
BATCH_COUNT: Final = "messaging.batch.message_count"
KEY: Final = "messaging.kafka.message.key"
OFFSET: Final = "messaging.kafka.offset"
TOMBSTONE: Final = "messaging.kafka.message.tombstone"
ERROR_TYPE: Final = "error.type"

KAFKA: Final = "kafka"
SEND: Final = "send"
RECEIVE: Final = "receive"
PROCESS: Final = "process"
SETTLE: Final = "settle"
# Kafka's names of the operations of the types "receive" and "settle".
POLL: Final = "poll"
COMMIT: Final = "commit"
