"""Kafka's jars, which Maven downloads once into `build/jars/` of the checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / "build" / "jars"
# The newest release, and the last one before 4.0 dropped old versions.
RELEASES = ("4.3.1", "3.9.1")


def path_of(artifact: str) -> Path:
    """Return the path of a fetched artifact ("group:name:version")."""
    _, name, version = artifact.split(":")
    return FOLDER / f"{name}-{version}.jar"


def fetched(artifact: str) -> Path:
    """Return the path of the artifact's jar, which Maven downloads if it is missing.

    Raises:
        OSError, subprocess.CalledProcessError: Maven is missing, or it cannot download the jar.
    """
    path = path_of(artifact)
    if not path.exists():
        command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={FOLDER}"]
        subprocess.run(command, check=True)
    return path


def kafka_clients(release: str) -> str:
    """Return the artifact with the definitions of a release."""
    return f"org.apache.kafka:kafka-clients:{release}"
