"""Users' programs before mypy and pyright, both strict: what is right passes, and each mistake is reported."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def mypy(*files: Path) -> dict[Path, dict[int, str]]:
    """The errors of `mypy --strict` by file and line."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--show-absolute-path"]
    done = subprocess.run(
        [*command, "--cache-dir", str(ROOT / ".mypy_cache" / "users"), *map(str, files)],
        cwd=HERE, capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    found: dict[Path, dict[int, str]] = {file: {} for file in files}
    for path, line, text in re.findall(r"^(.+?):(\d+): error: (.*)$", done.stdout, re.MULTILINE):
        found.setdefault(Path(path), {}).setdefault(int(line), text)
    return found


def pyright(*files: Path) -> dict[Path, dict[int, str]]:
    """The errors of pyright in strict mode by file and line."""
    config = HERE / "pyrightconfig.json"
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--outputjson",
        "--project",
        str(config),
        "--pythonpath",
        sys.executable,
    ]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr + done.stdout
    found: dict[Path, dict[int, str]] = {file: {} for file in files}
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        if each["severity"] == "error":
            line = each["range"]["start"]["line"] + 1
            found.setdefault(Path(each["file"]), {}).setdefault(line, each["message"])
    return found


@pytest.mark.timeout(180)
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_right_uses_pass_and_each_mistake_is_reported(checker: object) -> None:
    assert callable(checker)
    right, wrong = HERE / "right.py", HERE / "wrong.py"
    marked = {n for n, line in enumerate(wrong.read_text().splitlines(), 1) if line.endswith("# wrong")}
    assert len(marked) >= 40
    found = checker(right, wrong)
    assert found[right] == {}
    assert set(found) == {right, wrong}, "the package itself has errors under this checker"
    reported = found[wrong]
    assert {line: text for line, text in reported.items() if line not in marked} == {}
    assert marked - set(reported) == set()
