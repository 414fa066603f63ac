"""Kafka's command-line tools, run by their main classes: peers and checks of the interop tests."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from integration.kafka.fetch import java, libs

_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_SECONDS = 90.0

# what DumpLogSegments prints about a corrupt segment; its exit status is still 0
_FAULTS = (
    "isvalid: false",
    "Mismatches in :",
    "Found timestamp mismatch in :",
    "Found out of order timestamp in :",
    "The following indexed offsets are not found in the log.",
    "Snapshot is corrupt",
    "failed schema validation",
    "Error at offset",
    "Unknown record type",
    "Exception",
)


class ToolFailed(Exception):
    """A tool failed; the message has its last lines."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The output and the exit status of a tool."""

    command: str
    returncode: int
    stdout: str
    stderr: str

    def checked(self) -> ToolResult:
        """Return itself if the tool succeeded.

        Raises:
            ToolFailed: the exit status was not 0.
        """
        if self.returncode:
            raise ToolFailed(
                f"{self.command} ended with status {self.returncode}: {(self.stdout + self.stderr)[-1500:]}"
            )
        return self


class JavaTools:
    """Runs the tools of one Kafka release against one broker."""

    def __init__(self, bootstrap_servers: str, version: str = "4.3.1") -> None:
        self._bootstrap = bootstrap_servers
        self._version = version

    def command(self, main: str, *arguments: str) -> list[str]:
        """Return the command line of a tool, for callers that run it themselves."""
        return [java(), *_JVM, "-cp", f"{libs(self._version)}/*", main, *arguments]

    def run(self, main: str, *arguments: str, text: str | None = None, timeout: float = _SECONDS) -> ToolResult:
        """Run a tool to its end with `text` as its standard input."""
        done = subprocess.run(
            self.command(main, *arguments), input=text, capture_output=True, text=True, timeout=timeout, check=False
        )
        return ToolResult(f"{main} {shlex.join(arguments)}", done.returncode, done.stdout, done.stderr)

    def topics(self, *arguments: str) -> str:
        """Run kafka-topics."""
        main = "org.apache.kafka.tools.TopicCommand"
        return self.run(main, "--bootstrap-server", self._bootstrap, *arguments).checked().stdout

    def console_producer(self, topic: str, lines: Iterable[str], *arguments: str) -> None:
        """Run kafka-console-producer with these lines as its input."""
        main = "org.apache.kafka.tools.ConsoleProducer"
        text = "".join(f"{line}\n" for line in lines)
        result = self.run(
            main, "--bootstrap-server", self._bootstrap, "--topic", topic, *arguments, text=text
        ).checked()
        if "ERROR" in result.stderr or "Exception" in result.stderr:
            raise ToolFailed(f"{result.command}: {result.stderr[-1500:]}")

    def console_consumer(self, topic: str, partition: int, count: int, *arguments: str) -> list[str]:
        """Run kafka-console-consumer without a group.

        Return `count` records of one partition as printed.
        """
        main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        fixed = ("--bootstrap-server", self._bootstrap, "--topic", topic, "--partition", str(partition))
        ends = ("--offset", "earliest", "--max-messages", str(count), "--timeout-ms", "30000")
        return self.run(main, *fixed, *ends, *arguments).checked().stdout.splitlines()

    def producer_performance(self, topic: str, count: int, size: int, *properties: str) -> str:
        """Run kafka-producer-perf-test without throttling; return its last line of figures."""
        main = "org.apache.kafka.tools.ProducerPerformance"
        fixed = ("--topic", topic, "--num-records", str(count), "--record-size", str(size), "--throughput", "-1")
        given = ("--producer-props", f"bootstrap.servers={self._bootstrap}", *properties)
        return self.run(main, *fixed, *given).checked().stdout.strip().splitlines()[-1]

    def dump(self, files: Sequence[Path], *arguments: str) -> str:
        """Run kafka-dump-log over segment files and their indexes, decoding every record."""
        main = "org.apache.kafka.tools.DumpLogSegments"
        listed = ",".join(str(path) for path in files)
        result = self.run(main, "--deep-iteration", *arguments, "--files", listed).checked()
        return result.stdout + result.stderr


def dump_faults(output: str) -> list[str]:
    """Return the lines of a dump that report a fault.

    Pairs of non-consecutive offsets count, except with -1, which the tool uses before a file's
    first record.
    """
    faults = [line for line in output.splitlines() if any(fault in line for fault in _FAULTS)]
    gaps = re.findall(r"^\s*(-?\d+ is followed by -?\d+)$", output, re.MULTILINE)
    return faults + [gap for gap in gaps if not gap.startswith("-1 ")]
