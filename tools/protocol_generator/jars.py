"""Where Kafka's jars come from: Maven copies them into `build/jars/` of the checkout, once."""

from __future__ import annotations

import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / "build" / "jars"
# The newest release, and the last one before 4.0 dropped old versions.
RELEASES = ("4.3.1", "3.9.1")


def path_of(artifact: str) -> Path:
    """Where an artifact ("group:name:version") lies once it was fetched."""
    _, name, version = artifact.split(":")
    return FOLDER / f"{name}-{version}.jar"


def fetched(artifact: str) -> Path:
    """The artifact's jar, fetched when it is not there yet.

    Raises:
        OSError, subprocess.CalledProcessError: there is no Maven, or it cannot get the jar.
    """
    path = path_of(artifact)
    if not path.exists():
        command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={FOLDER}"]
        subprocess.run(command, check=True)
    return path


def kafka_clients(release: str) -> str:
    """The artifact that holds the definitions of a release."""
    return f"org.apache.kafka:kafka-clients:{release}"
