"""Kafka for the scenarios and the benchmark: jars, servers and command-line tools, by version."""

from integration.kafka.fetch import MissingPrerequisite, java, libs
from integration.kafka.server import DockerKafka, KafkaServer, RealKafka, real_kafka
from integration.kafka.tools import JavaTools, ToolFailed, ToolResult, dump_faults

VERSIONS = ("4.3.1", "0.10.2.2", "0.8.2.2")

__all__ = [
    "VERSIONS",
    "DockerKafka",
    "JavaTools",
    "KafkaServer",
    "MissingPrerequisite",
    "RealKafka",
    "ToolFailed",
    "ToolResult",
    "dump_faults",
    "java",
    "libs",
    "real_kafka",
]
