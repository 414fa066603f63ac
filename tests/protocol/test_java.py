"""Kafka's own classes read our bytes and write the same bytes: every message in every version."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from aiokwire.protocol import Data
from tools.protocol_generator.jars import RELEASES, kafka_clients

from .kafka_jars import jar, java
from .samples import TopLevel, all_types, encode, sample, versions_of

ORACLE = Path(__file__).with_name("Oracle.java")
LOGGER = "org.slf4j:slf4j-api:1.7.36"  # Kafka's classes do not load without it
NEWEST, OLDER = RELEASES


def cases() -> list[tuple[type[TopLevel], int, str, str]]:
    """Message, version, the Java class, our bytes as hex."""
    rng = random.Random("java")
    found = []
    for kind in all_types():
        java_class = kind.__name__ if issubclass(kind, Data) else f"{kind.__name__}Data"
        for version in versions_of(kind):
            for count in range(4):
                message = sample(kind, rng, kind.VERSIONS, version) if count else kind()
                found.append((kind, version, java_class, encode(message, kind.VERSIONS, version).hex()))
    return found


@pytest.mark.timeout(120)
def test_kafka_reads_and_writes_the_same_bytes() -> None:
    class_paths = {release: (jar(kafka_clients(release)), jar(LOGGER)) for release in RELEASES}
    asked = cases()
    lines = "".join(f"{name} {version} {data}\n" for _, version, name, data in asked)
    answers = {}
    for release, paths in class_paths.items():
        command = [java(), "-cp", os.pathsep.join(map(str, paths)), str(ORACLE)]
        done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
        answers[release] = done.stdout.splitlines()
    wrong = []
    for (kind, version, _, data), newest, older in zip(asked, answers[NEWEST], answers[OLDER], strict=True):
        answer = newest if newest != "unsupported" else older
        if answer != data:
            wrong.append(f"{kind.__name__} version {version}: {answer[:300]} for {data[:300]}")
    assert not wrong, f"{len(wrong)} of {len(asked)}:\n" + "\n".join(wrong[:20])
