"""The sources of other projects, unpacked to `build/`.

The distributions of aiokafka and FastStream on PyPI have neither tests nor examples:
`AIOKWIRE_SOURCES` names a directory with checkouts or bare repositories of them (`aiokafka`,
`faststream`); without it they are cloned. Those of other projects have what is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BUILD: Final = Path(__file__).resolve().parents[2] / "build"


class MissingSource(Exception):
    """A project's source could not be fetched; the message names how to provide it."""


@dataclass(frozen=True)
class Source:
    """A project at a release."""

    name: str
    address: str
    tag: str
    folders: tuple[str, ...]


AIOKAFKA: Final = Source("aiokafka", "https://github.com/aio-libs/aiokafka", "v0.14.0", ("tests", "examples"))
FASTSTREAM: Final = Source(
    "faststream",
    "https://github.com/ag2ai/faststream",
    "0.7.8",
    ("tests", "examples", "docs/docs_src", "pyproject.toml"),
)


def unpacked(source: Source) -> Path:
    """Return the directory with a project's tests; fetch it if it is not there.

    Raises: MissingSource: there is no network, and no local repository.
    """
    target = BUILD / source.name
    if not (target / source.folders[0]).exists():
        target.mkdir(parents=True, exist_ok=True)
        given = os.environ.get("AIOKWIRE_SOURCES")
        if given is not None:
            _archive(Path(given) / source.name, "HEAD", source, target)
        else:
            _clone(source, target)
    return target


def _clone(source: Source, target: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        command = ["git", "clone", "-q", "--depth", "1", "--branch", source.tag, source.address, directory]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise MissingSource(
                f"{source.name} {source.tag} could not be cloned ({done.stderr.strip()}): set AIOKWIRE_SOURCES to a "
                f"directory with a checkout named {source.name}"
            )
        _archive(Path(directory), "HEAD", source, target)


def _archive(repository: Path, revision: str, source: Source, target: Path) -> None:
    with tempfile.TemporaryFile() as file:
        command = ["git", "-C", str(repository), "archive", revision, *source.folders]
        if subprocess.run(command, stdout=file, check=False).returncode:
            raise MissingSource(f"{repository} is not a repository of {source.name}")
        file.seek(0)
        with tarfile.open(fileobj=file) as archive:
            archive.extractall(target, filter="data")


def distribution(name: str, version: str) -> Path:
    """Return the unpacked source distribution of a package; download it if it is not there.

    Raises: MissingSource: there is no network.
    """
    target = BUILD / "sdists" / f"{name}-{version}"
    if not target.exists():
        with tempfile.TemporaryDirectory() as directory:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", name]
            if subprocess.run([*command, "--dest", directory, f"{name}=={version}"], check=False).returncode:
                raise MissingSource(f"the source distribution of {name} {version} could not be downloaded")
            (file,) = Path(directory).glob("*.tar.gz")
            with tarfile.open(file) as archive:
                archive.extractall(directory, filter="data")
            target.parent.mkdir(exist_ok=True)
            shutil.move(Path(directory) / file.name.removesuffix(".tar.gz"), target)
    return target


def copied(folder: Path, name: str) -> Path:
    """Return a fresh copy of a folder in `build/`, to be changed for a run."""
    target = BUILD / "compat-runs" / name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    return target
