"""An environment that is shipped with a job: `aiokwire[spark-executor]` without PySpark.

It is copied from the packages installed for the tests, so that it needs neither a package index nor
a compiler.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import aiokwire

ROOT: Final = Path(__file__).resolve().parents[2]
EXTRA: Final = "spark-executor"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_SKIPPED: Final = shutil.ignore_patterns("__pycache__", "tests", "*.pyx", "*.c", "*.h", "*.a", "include")


def make_environment(folder: Path, *extras: str) -> None:
    """Create a venv with aiokwire of this checkout and the requirements of its extras."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [each for extra in (EXTRA, *extras) for each in project["optional-dependencies"][extra]]
    for name in sorted(_with_needed([*project["dependencies"], *needed])):
        _copy(importlib.metadata.distribution(name), packages)
    root = Path(aiokwire.__file__).parent
    for package in (root, root.with_name("pyspark_aiokwire")):
        shutil.copytree(package, packages / package.name, ignore=_SKIPPED)


def pack(environment: Path, archive: Path) -> None:
    """Pack the environment as the documentation describes."""
    subprocess.run(["tar", "-C", str(environment), "-czf", str(archive), "."], check=True)


def _with_needed(requirements: Sequence[str]) -> set[str]:
    """Return the installed distributions that these requirements need, directly or indirectly."""
    found: set[str] = set()
    for line in requirements:
        name = _NAME.match(line)
        if name and "extra ==" not in line and name[0] not in found and _is_installed(name[0]):
            found |= {name[0]} | _with_needed(importlib.metadata.requires(name[0]) or ())
    return found


def _is_installed(name: str) -> bool:
    """Whether a distribution is installed; requirements of other systems or Pythons are not."""
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _copy(distribution: importlib.metadata.Distribution, packages: Path) -> None:
    tops = {file.parts[0] for file in distribution.files or () if ".." not in file.parts}
    for top in sorted(tops - {"__pycache__"}):
        source = Path(str(distribution.locate_file(top)))
        if source.is_dir():
            shutil.copytree(source, packages / top, ignore=_SKIPPED, dirs_exist_ok=True)
        else:
            shutil.copy(source, packages / top)


if __name__ == "__main__":
    make_environment(Path(sys.argv[1]))
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
