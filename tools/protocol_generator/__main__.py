"""Write the generated modules of `aiokwire.protocol`, or check that they are fresh.

    python -m tools.protocol_generator [--check] [--jar NEWER --jar OLDER]

Without `--jar`, Maven downloads the `kafka-clients` jars of the two releases into `build/jars/` of
the checkout.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.protocol_generator import emit
from tools.protocol_generator.definitions import Message, join, read_jar, snake_case
from tools.protocol_generator.jars import CHECKOUT, RELEASES, fetched, kafka_clients

PROTOCOL = CHECKOUT / "aiokwire" / "protocol"
# Long, but flat: one line for each field of the wire format.
TOLERATED = ("C901", "PLR0912", "PLR0915")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.protocol_generator", description="generate messages")
    parser.add_argument("--check", action="store_true", help="write nothing, fail when anything differs")
    parser.add_argument(
        "--jar", action="append", type=Path, default=[], help="a kafka-clients jar: the newer, then the older"
    )
    options = parser.parse_args(arguments)
    if len(options.jar) not in (0, 2):
        parser.error("--jar is given twice or not at all")
    newer, older = options.jar or [fetched(kafka_clients(release)) for release in RELEASES]
    wanted = generate(newer, older)
    stale = stale_files(wanted)
    if options.check:
        for path in stale:
            print(f"stale: {path.relative_to(CHECKOUT)}")
        return 1 if stale else 0
    for path in stale:
        if path in wanted:
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted[path])
        else:
            path.unlink()
    print(f"{len(stale)} of {len(wanted)} modules written")
    return 0


def generate(newer: Path, older: Path) -> dict[Path, str]:
    """Return the text of every generated file by its path."""
    messages = join(read_jar(newer), read_jar(older))
    names = " and ".join(RELEASES)
    requests = sorted(
        (item for item in messages.values() if item.role == "request"), key=lambda item: item.api_key or 0
    )
    texts = {Path("api_key.py"): emit.api_keys(requests, names)}
    texts[Path("messages/__init__.py")] = (
        '"""Generated modules, one for each API; each loads when it is first used."""\n'
    )
    for request in requests:
        api = request.name.removesuffix("Request")
        texts[Path(f"messages/{snake_case(api)}.py")] = emit.module([messages[f"{api}Response"], request], names)
    for data in filter(_is_data, messages.values()):
        texts[Path(f"messages/{snake_case(data.name)}.py")] = emit.module([data], names)
    return {PROTOCOL / path: text for path, text in _finished(texts).items()}


def stale_files(wanted: dict[Path, str]) -> list[Path]:
    """Return files that are missing, differ, or should not exist."""
    differing = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    return differing + [path for path in (PROTOCOL / "messages").glob("*.py") if path not in wanted]


def _is_data(message: Message) -> bool:
    return message.role == "data" and bool(message.fields)


def _finished(texts: dict[Path, str]) -> dict[Path, str]:
    """Return the texts formatted, with sorted imports, and complex flat methods noqa'd."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in texts.items():
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(text)
        _ruff(root, "check", "--quiet", "--fix", "--select", "I,F401")
        _ruff(root, "format", "--quiet")
        for path, line, code in _findings(root):
            lines = (root / path).read_text().splitlines()
            head, found, codes = lines[line].partition("  # noqa: ")
            reason = " - flat: a line for each field"
            codes = f"{codes.removesuffix(reason)}, {code}" if found else code
            lines[line] = f"{head}  # noqa: {codes}{reason}"
            (root / path).write_text("\n".join(lines) + "\n")
        _ruff(root, "format", "--quiet")
        return {path: (root / path).read_text() for path in texts}


def _findings(root: Path) -> list[tuple[Path, int, str]]:
    output = _ruff(root, "check", "--exit-zero", "--output-format", "json", "--select", ",".join(TOLERATED))
    found = {(Path(item["filename"]), item["location"]["row"] - 1, item["code"]) for item in json.loads(output)}
    return sorted(found)


def _ruff(root: Path, *arguments: str) -> str:
    config = ("--config", str(CHECKOUT / "pyproject.toml"), "--config", 'src = ["."]', "--no-cache")
    command = [sys.executable, "-m", "ruff", arguments[0], *config, *arguments[1:], str(root)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
