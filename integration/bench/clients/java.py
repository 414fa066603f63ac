"""Kafka's Java client by its own performance tools, in a process of its own.

CPU time includes the start of the JVM and its compilation, about two seconds; the rate is the
tool's own and does not.
"""

from __future__ import annotations

import re
import resource
import subprocess
import tempfile
from pathlib import Path

from integration.bench.meter import Figures, Job
from integration.kafka.fetch import java, libs

_SECONDS = 110
_TOOLS = "org.apache.kafka.tools"


def produce(job: Job) -> Figures:
    properties = {"acks": "all", "linger.ms": "5", "batch.size": "1000000", "compression.type": job.compression}
    sizes = ["--num-records", str(job.count), "--record-size", str(job.value_size), "--throughput", "-1"]
    return _run(job, "ProducerPerformance", properties, [*sizes, "--command-config"], _produced)


def consume(job: Job) -> Figures:
    properties = {"auto.offset.reset": "earliest", "group.id": job.topic, "max.poll.records": "10000"}
    arguments = ["--bootstrap-server", job.bootstrap, "--num-records", str(job.count), "--command-config"]
    return _run(job, "ConsumerPerformance", properties, arguments, _consumed)


def _run(job: Job, tool: str, properties: dict[str, str], arguments: list[str], rate_of: object) -> Figures:
    with tempfile.TemporaryDirectory() as home:
        config = Path(home) / "client.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in {**_way(job), **properties}.items()))
        command = [java(), "-Xmx512m", "-cp", f"{libs('4.3.1')}/*", f"{_TOOLS}.{tool}", "--topic", job.topic]
        before = _cpu()
        done = subprocess.run(
            [*command, *arguments, str(config)], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if done.returncode:
            raise RuntimeError((done.stdout + done.stderr)[-1500:])
    assert callable(rate_of)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Figures(job.count, job.count / rate_of(done.stdout), _cpu() - before, usage.ru_maxrss / 1024)


def _way(job: Job) -> dict[str, str]:
    way = {"bootstrap.servers": job.bootstrap}
    if job.security:
        way |= {"security.protocol": job.security, "ssl.truststore.type": "PEM", "ssl.truststore.location": job.cafile}
    if job.username:
        login = f'username="{job.username}" password="{job.password}"'
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        way |= {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": f"{module} required {login};"}
    return way


def _produced(output: str) -> float:
    """Return records per second from the tool's last line."""
    return float(re.findall(r"([\d.]+) records/sec", output.splitlines()[-1])[0])


def _consumed(output: str) -> float:
    """Return records per second, without the wait for the group, from the tool's line of values."""
    return float(output.strip().splitlines()[-1].split(",")[-1])


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
