"""An environment for other projects' suites: this one, and packages that only they need."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from integration.compat.sources import BUILD

ROOT: Final = BUILD.parent


def python_with(*packages: str, name: str = "compat") -> Path:
    """Return an interpreter that has this environment's packages and `packages`."""
    home = BUILD / f"venv-{name}"
    python = home / "bin" / "python"
    stamp = home / "installed"
    wanted = "\n".join(packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    venv.create(home, with_pip=False, clear=True)
    _add_paths(home, [sysconfig.get_path("purelib"), str(ROOT)])
    target = _site(home)
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(target), "--upgrade", *packages]
    subprocess.run(command, check=True)
    stamp.write_text(wanted)
    return python


def _site(home: Path) -> Path:
    return next(home.glob("lib/python*/site-packages"))


def _add_paths(home: Path, paths: Sequence[str]) -> None:
    (_site(home) / "parent.pth").write_text("\n".join(paths))
