"""Users' programs under strict mypy and pyright: right uses pass, and each mistake is reported."""

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
    """Return the errors of `mypy --strict` by file and line."""
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
    """Return the errors of strict pyright by file and line; the configuration names the files."""
    config = files[0].parent / "pyrightconfig.json"
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
    answer = json.loads(done.stdout)
    assert answer["summary"]["filesAnalyzed"] == len(files)
    found: dict[Path, dict[int, str]] = {file: {} for file in files}
    for each in answer["generalDiagnostics"]:
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


@pytest.mark.timeout(180)
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_the_programs_of_the_readme_and_of_the_clients_page_pass(checker: object, tmp_path: Path) -> None:
    assert callable(checker)
    text = (ROOT / "README.md").read_text() + (ROOT / "docs" / "clients.md").read_text()
    programs = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    files = [tmp_path / f"program_{number}.py" for number in range(1, len(programs) + 1)]
    for file, program in zip(files, programs, strict=True):
        file.write_text(program)
    options = json.loads((HERE / "pyrightconfig.json").read_text())
    options |= {"include": [file.name for file in files], "extraPaths": [str(ROOT)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(options))
    assert len(files) >= 7
    assert {file.name: errors for file, errors in checker(*files).items() if errors} == {}
