"""Check that the wheel works without the checkout.

`python integration/wheel.py DIST` checks the files of the newest wheel of DIST, installs it into a
new environment of this interpreter, without a compiler on the path, sends records through its
broker, and runs `aiokwire broker`. The dependencies come from this interpreter's environment; with
`--index` they are installed from the package index. `--installed` does the same with the aiokwire
of this interpreter. `--types` also has pyright check that every symbol of the wheel has a type,
those of internal modules included; for the bases of others, such as PySpark's, it needs them in
this interpreter's environment. `make wheel` calls it with `--types`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path
from typing import Any

MOST_BYTES = 6_000_000
LEAST_SYMBOLS = 15_000  # fewer: pyright did not see the whole package
CHECKOUT = Path(__file__).resolve().parents[1]

TRIAL = """
import asyncio, aiokwire, aiokwire.broker, sys
assert sys.argv[1] not in aiokwire.__file__, aiokwire.__file__

async def trial():
    async with aiokwire.broker.Broker(topics={"trial": 2}) as broker:
        async with aiokwire.Producer(broker.bootstrap_servers) as producer:
            for number in range(1000):
                await producer.submit("trial", b"%d" % number)
            await producer.flush()
        seen = set()
        options = dict(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
        async with aiokwire.Consumer("trial", **options) as consumer:
            while len(seen) < 1000:
                seen.update(int(record.value) for record in await consumer.getmany(timeout=5))
    return len(seen)

print("the wheel works:", asyncio.run(trial()), "records sent and read")
"""


def newest_wheel(dist: Path) -> Path:
    """Return the newest wheel of a folder."""
    return max(dist.glob("aiokwire-*.whl"), key=lambda path: path.stat().st_mtime)


def check_files(wheel: Path) -> None:
    """Check a wheel's size, and that it has compiled modules and types but no source of them."""
    names = zipfile.ZipFile(wheel).namelist()
    foreign = [name for name in names if not re.match(r"(aiokwire|pyspark_aiokwire|aiokwire-[^/]*\.dist-info)/", name)]
    assert not foreign, f"{wheel.name}: files outside the package: {foreign}"
    sources = [name for name in names if name.endswith((".c", ".pyx", ".pxd", ".o", ".pyc"))]
    assert not sources, f"{wheel.name}: sources and build results: {sources}"
    modules = {name.split(".")[0] for name in names if name.endswith((".so", ".pyd"))}
    expected = {str(path.relative_to(CHECKOUT).with_suffix("")) for path in CHECKOUT.glob("aiokwire/**/*.pyx")}
    assert modules == expected, f"{wheel.name}: compiled modules {modules ^ expected}"
    assert "aiokwire/py.typed" in names, f"{wheel.name}: py.typed is missing"
    size = wheel.stat().st_size
    assert size < MOST_BYTES, f"{wheel.name}: {size:,} bytes; the limit is {MOST_BYTES:,} (is it stripped?)"
    print(f"{wheel.name}: {size:,} bytes, {len(names)} files")


def try_wheel(wheel: Path, *, from_index: bool, types: bool) -> None:
    """Install a wheel into a new environment, use it there, and check its types if `types`."""
    with tempfile.TemporaryDirectory() as directory:
        environment = Path(directory)
        venv.create(environment, with_pip=False)
        python = environment / "bin" / "python"
        install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", str(wheel)]
        bare = {**os.environ, "PATH": str(environment / "bin")}  # no compiler
        if not from_index:
            install.append("--no-deps")
            site = next((environment / "lib").glob("python*/site-packages"))
            # Behind the wheel's own directory, without .pth files: the checkout's editable install is not visible.
            (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        else:
            install += ["--only-binary", ":all:"]
        subprocess.run(install, check=True, env=bare)
        try_installed(python, environment)
        if types:
            check_types(environment)


def check_types(environment: Path) -> None:
    """Check that pyright knows the type of every symbol of the aiokwire of an environment.

    pyright takes the environment from PATH: `--verifytypes` ignores `--pythonpath`.
    """
    command = [sys.executable, "-m", "pyright", "--verifytypes", "aiokwire", "--ignoreexternal", "--outputjson"]
    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=environment, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.stdout, f"pyright --verifytypes ended with status {done.returncode}: {done.stderr}"
    report = json.loads(done.stdout)
    found = report.get("typeCompleteness")
    assert found, f"pyright --verifytypes: {report['generalDiagnostics']}"
    assert Path(found["packageRootDirectory"]).is_relative_to(environment.resolve()), found["packageRootDirectory"]
    counts = found["exportedSymbolCounts"]
    total = sum(counts.values())
    unknown = untyped(found["symbols"])
    assert counts["withKnownType"] == total > LEAST_SYMBOLS, (
        f"{total - counts['withKnownType']} of {total} symbols have no certain type; annotate them:\n"
        + "\n".join(unknown)
    )
    print(f"pyright knows the types of all {total:,} symbols")


def untyped(symbols: list[dict[str, Any]]) -> list[str]:
    """Return what pyright reports about the symbols without a certain type, but not about those
    that merely mention one of these."""
    texts = (
        f"{symbol['name']}: {' '.join(each['message'].split())}"
        for symbol in symbols
        if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]
        for each in symbol["diagnostics"]
    )
    return [text for text in texts if "partially unknown" not in text and "No docstring" not in text]


def try_installed(python: Path, directory: Path) -> None:
    """Send records through the broker of an installed aiokwire, and run its command."""
    subprocess.run([str(python), "-c", TRIAL, str(CHECKOUT)], check=True, cwd=directory, timeout=60)
    run_broker([str(python), "-m", "aiokwire"], directory)


def run_broker(command: list[str], directory: Path) -> None:
    """Run `aiokwire broker` until it reports its address, and close its standard input."""
    broker = subprocess.Popen(
        [*command, "broker", "--listen", "127.0.0.1:0", "--exit-with-stdin"],
        cwd=directory, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert broker.stdout is not None
    try:
        address = broker.stdout.readline().strip()
        assert "127.0.0.1:" in address, f"{' '.join(command)} broker printed {address!r}"
        broker.communicate(timeout=30)
    finally:
        if broker.poll() is None:
            broker.kill()
    assert broker.returncode == 0, f"{' '.join(command)} broker ended with status {broker.returncode}"
    print(f"{Path(command[0]).name} ... broker works: {json.dumps(address)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dist", nargs="?", type=Path)
    parser.add_argument("--index", action="store_true", help="install the dependencies from the package index")
    parser.add_argument("--installed", action="store_true", help="check the aiokwire of this interpreter")
    parser.add_argument("--types", action="store_true", help="check with pyright that every symbol has a type")
    options = parser.parse_args()
    if options.installed:
        with tempfile.TemporaryDirectory() as directory:
            try_installed(Path(sys.executable), Path(directory))
    elif options.dist is None:
        parser.error("give DIST or --installed")
    else:
        wheel = newest_wheel(options.dist)
        check_files(wheel)
        try_wheel(wheel, from_index=options.index, types=options.types)


if __name__ == "__main__":
    main()
