"""An uncompiled source folder shadows the installed package: the error names it and what to do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import aiokwire

PACKAGE = Path(aiokwire.__file__).parent


@pytest.mark.parametrize("statement", ["import aiokwire", "from aiokwire.broker import Broker", "import aiokwire.cli"])
def test_an_import_from_a_checkout_that_is_not_compiled_advises_to_build(tmp_path: Path, statement: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "aiokwire", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, '.'); {statement}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: aiokwire is imported from a source folder without its compiled modules "
        f"({tmp_path / 'aiokwire'}): run outside the checkout, or run `make build`"
    )
