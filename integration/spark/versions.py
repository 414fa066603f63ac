"""The Spark tests with other versions of PySpark: `make spark-versions`, or versions as arguments.

Each version has an environment in build/spark-versions (about 500 MB, downloaded once; `--remove`
deletes it after the run) with that PySpark; all other packages come from the environment that runs
this module.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "build" / "spark-versions"
VERSIONS = ("4.0.5", "4.1.4", "4.2.0")
# Before 4.2 PySpark leaves sockets to the garbage collector, which the tests would report as ours.
OLD_WARNINGS = ("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")


def environment(version: str) -> Path:
    """Return the interpreter of a version's environment, which is created if it is missing."""
    folder = PLACE / version
    python = folder / "bin" / "python"
    stamp = folder / "installed"
    if not stamp.exists():
        print(f"PySpark {version}: installing", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        own = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
        (own / "base.pth").write_text(sysconfig.get_path("purelib") + "\n")
        subprocess.run([python, "-m", "pip", "install", "-q", f"pyspark=={version}"], check=True)
        stamp.touch()
    return python


def run(version: str, arguments: list[str]) -> int:
    """Run the tests that the version supports, and return their exit status."""
    python = environment(version)
    warnings = [] if version >= "4.2" else [f"-W{each}" for each in OLD_WARNINGS]
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *warnings, *(arguments or ["tests/spark"])]
    print(f"PySpark {version}: {' '.join(command[1:])}", flush=True)
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"default: {' '.join(VERSIONS)}")
    parser.add_argument("--tests", nargs="*", default=[], metavar="PATH", help="default: tests/spark")
    parser.add_argument("--remove", action="store_true", help="remove each environment after its run")
    given = parser.parse_args()
    failed = []
    for version in given.versions or VERSIONS:
        if run(version, given.tests):
            failed.append(version)
        if given.remove:
            shutil.rmtree(PLACE / version)
    print(f"failed with PySpark {', '.join(failed)}" if failed else "passed with every version")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
