"""Run the fuzz tests of the record and protocol kernels under AddressSanitizer.

Builds the kernels with `-fsanitize=address` in a separate directory (default: `build/asan`), so
that the checkout's build is unchanged, and runs the tests there without Python's own allocator:
an out-of-bounds read or write ends the run with a report. Needs gcc and its libasan.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ["-fsanitize=address", "-fno-omit-frame-pointer", "-g", "-O1", "-fPIC", "-fno-strict-aliasing"]
# As in tests/conftest.py, which needs the whole package: a slow machine must not fail these tests.
CONFTEST = """
from hypothesis import HealthCheck, settings

settings.register_profile("asan", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("asan")
"""
TESTS = [
    "tests/records/test_fuzz.py",
    "tests/records/test_arrow.py",
    "tests/records/test_avro.py",
    "tests/protocol/test_codec.py",
    "tests/protocol/test_messages.py",
]
KERNELS = ("protocol", "records", "net")  # the packages whose modules are compiled


def copy_sources(target: pathlib.Path) -> None:
    """Copy the package and the tests of the kernels, without compiled modules."""
    shutil.rmtree(target, ignore_errors=True)
    skipped = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    for folder in ("aiokwire", "tests/records", "tests/protocol"):
        shutil.copytree(ROOT / folder, target / folder, ignore=skipped)
    (target / "conftest.py").write_text(CONFTEST)


def build(target: pathlib.Path) -> None:
    """Compile each module of the kernels in place with the sanitizer."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    include = "-I" + sysconfig.get_path("include")
    sources = [path for package in KERNELS for path in sorted((target / "aiokwire" / package).glob("*.pyx"))]
    for source in sources:
        stem = str(source.relative_to(target).with_suffix(""))
        subprocess.run([sys.executable, "-m", "cython", "-3", "-I", ".", f"{stem}.pyx"], cwd=target, check=True)
        subprocess.run(["gcc", *FLAGS, "-shared", include, f"{stem}.c", "-o", stem + suffix], cwd=target, check=True)


def run_tests(target: pathlib.Path, tests: list[str]) -> int:
    """Run the tests; a nonzero exit status is a failed test or a report of the sanitizer."""
    libasan = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    environment = {
        **os.environ,
        "LD_PRELOAD": libasan,
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(target),
        # Python itself leaks memory at exit; a huge allocation must fail as without the sanitizer
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:abort_on_error=1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(target)]
    command += ["-p", "no:aiokwire", "--import-mode=importlib", "-W", "error", "-o", "timeout=900", *tests]
    return subprocess.run(command, cwd=target, env=environment, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dir", type=pathlib.Path, default=ROOT / "build" / "asan", help="build directory")
    parser.add_argument("tests", nargs="*", default=TESTS, help="tests to run")
    options = parser.parse_args()
    target = options.dir.resolve()
    copy_sources(target)
    build(target)
    return run_tests(target, options.tests)


if __name__ == "__main__":
    sys.exit(main())
