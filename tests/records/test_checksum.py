"""CRC-32C from the extension alone."""

from __future__ import annotations

import subprocess
import sys

from aiokwire.records import crc32c


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(b"6789"), crc32c(b"12345")) == 0xE3069283


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_kernel_loads_without_what_the_package_wants_for_its_command_line() -> None:
    loaded = run("import sys, aiokwire.records; print(*sys.modules)").split()
    assert "aiokwire.records.checksum" in loaded
    assert not {"argparse", "crc32c", "importlib.metadata"} & set(loaded)


def test_the_package_can_be_imported_beside_it() -> None:
    assert run("import aiokwire.records as r, crc32c; print(crc32c.crc32c is r.crc32c)") == "True"
