"""Kafka's jars: Maven copies them into the checkout once, later runs need no network.

`python -m integration.kafka.fetch [VERSION...]` downloads them before the tests.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_JARS = _HERE.parents[1] / "build" / "kafka"
_MAVEN_SECONDS = 600


class MissingPrerequisite(Exception):
    """The machine lacks a requirement: a failure where CI=true, otherwise a skip that names it."""


def java() -> str:
    """Return the path of the Java launcher.

    Raises:
        MissingPrerequisite: there is none in JAVA_HOME and PATH.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise MissingPrerequisite("Java: install a JDK or JRE 17 or newer")
    return found


def libs(version: str) -> Path:
    """Return the directory with the jars of a Kafka release, downloaded by Maven if missing.

    Raises:
        MissingPrerequisite: Maven is missing, or it could not download the jars.
    """
    pom = _HERE / f"pom-{version}.xml"
    if not pom.exists():
        raise MissingPrerequisite(f"a pom for Kafka {version} (available: {', '.join(known())})")
    directory = _JARS / version / "libs"
    stamp = _JARS / version / "complete"
    wanted = hashlib.sha256(pom.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return directory
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingPrerequisite(f"Maven, which downloads the jars of Kafka {version}")
    # Into a directory of its own: Maven keeps what an interrupted run has left there, also an empty jar.
    partial = directory.with_name("partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_MAVEN_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise MissingPrerequisite(f"the jars of Kafka {version}: Maven took over {_MAVEN_SECONDS} s") from error
    if done.returncode:
        tail = " ".join((done.stdout + done.stderr).split())[-600:]
        raise MissingPrerequisite(f"the jars of Kafka {version}: Maven ended with status {done.returncode}: {tail}")
    shutil.rmtree(directory, ignore_errors=True)
    partial.rename(directory)
    stamp.write_text(wanted)
    return directory


def known() -> list[str]:
    """Return the releases with a pom in this directory."""
    return sorted(path.stem.removeprefix("pom-") for path in _HERE.glob("pom-*.xml"))


def main() -> int:
    for version in sys.argv[1:] or known():
        try:
            directory = libs(version)
        except MissingPrerequisite as missing:
            print(f"Kafka {version}: missing {missing}", file=sys.stderr)
            return 1
        print(f"Kafka {version}: {len(list(directory.glob('*.jar')))} jars")
    return 0


if __name__ == "__main__":
    sys.exit(main())
