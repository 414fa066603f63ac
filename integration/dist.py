"""Build the wheel and the source archive of a release into `dist`, and check them.

`make dist` calls it in an environment with the dependency group `release`. The source archive is
built first, unpacked elsewhere, and compiled there twice without the network, with nothing but the
build requirements that it names: both wheels must have the same bytes. auditwheel names the oldest
system that a Linux wheel runs on. The wheel is used as `integration/wheel.py --index` does, by
`uvx` and by `pipx run`. The bill of materials lists what an installation brings; `--sbom` writes it
alone.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

from integration.wheel import CHECKOUT, newest_wheel, run_broker

DIST = CHECKOUT / "dist"
INTERPRETER = f"cp3{sys.version_info.minor}"
# Without debug information and symbols: a tenth of the size, and no paths of the machine.
SMALL = {"CFLAGS": "-g0", "LDFLAGS": "-Wl,--strip-all" if sys.platform == "linux" else ""}
REQUIRED = (
    "integration/wheel.py",
    "aiokwire/producer/_accumulator.pyx",
    "aiokwire/producer/_delivery.pxd",
    "LICENSE",
    "pyproject.toml",
)
FOREIGN = ("tests", "tools", "docs", "build")


def run(*command: str | Path, **environment: str) -> None:
    subprocess.run([str(part) for part in command], check=True, cwd=CHECKOUT, env={**os.environ, **environment})


def tool(name: str) -> Path:
    """Return the path of a command of this environment."""
    return Path(sys.executable).parent / name


def commit_time() -> str:
    """Return the time of the newest commit, which every file of the archives gets."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return given or subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=CHECKOUT, text=True).strip()


def build_sdist(epoch: str) -> Path:
    """Build the source archive; its bytes depend on the commit alone."""
    with tempfile.TemporaryDirectory() as directory:
        run(sys.executable, "-m", "build", "-q", "--sdist", "--no-isolation", "--outdir", directory)
        built = next(Path(directory).glob("*.tar.gz"))
        target = DIST / built.name
        target.write_bytes(repacked(built, int(epoch)))
    check_sdist(target)
    return target


def repacked(archive: Path, epoch: int) -> bytes:
    """Return an archive with sorted entries, one time, and no user."""
    packed = io.BytesIO()
    with (
        tarfile.open(archive) as source,
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for entry in sorted(source.getmembers(), key=lambda entry: entry.name):
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = epoch, 0, 0, "", ""
            entry.mode, entry.pax_headers = 0o755 if entry.isdir() else 0o644, {}
            target.addfile(entry, source.extractfile(entry) if entry.isfile() else None)
    return packed.getvalue()


def check_sdist(archive: Path) -> None:
    """Check that the source archive has what a build needs, and no tests, tools or build
    results."""
    with tarfile.open(archive) as found:
        names = {name.partition("/")[2] for name in found.getnames()}
    missing = [name for name in REQUIRED if name not in names]
    foreign = [name for name in names if name.split("/")[0] in FOREIGN or name.endswith((".c", ".so", ".pyc"))]
    assert not missing, f"{archive.name}: missing {missing}"
    assert not foreign, f"{archive.name}: {foreign[:5]}"
    print(f"{archive.name}: {archive.stat().st_size:,} bytes, {len(names)} entries")


def download_requirements(house: Path) -> None:
    """Download what `pyproject.toml` requires of a build."""
    required = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["build-system"]["requires"]
    run(sys.executable, "-m", "pip", "download", "-q", "-d", house, *required)


def offline() -> list[str]:
    """Return the prefix of a command that runs without network interfaces, where the system
    permits it."""
    prefix = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") and subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode == 0:
        return prefix
    print("this system has no unshare: pip's --no-index alone keeps the build off the network")
    return []


def build_wheel(archive: Path, epoch: str, house: Path, outdir: Path) -> Path:
    """Compile the source archive in a folder of its own, without the network."""
    with tempfile.TemporaryDirectory() as directory:
        with tarfile.open(archive) as packed:
            packed.extractall(directory, filter="data")
        source = next(Path(directory).iterdir())
        run(
            *offline(), sys.executable, "-m", "pip", "wheel", "-q", "--no-index", "--find-links", house, "--no-deps",
            "-w", outdir, source, SOURCE_DATE_EPOCH=epoch, **SMALL,
        )  # fmt: skip
    return newest_wheel(outdir)


def repaired(wheel: Path, epoch: str, outdir: Path) -> Path:
    """Return a Linux wheel with the tag of the oldest system that it runs on."""
    if platform.system() != "Linux":
        return wheel
    environment = {"PATH": f"{tool('patchelf').parent}:{os.environ['PATH']}", "SOURCE_DATE_EPOCH": epoch}
    run(sys.executable, "-m", "auditwheel", "repair", "-w", outdir, wheel, **environment)
    return newest_wheel(outdir)


def build_twice(archive: Path, epoch: str, house: Path) -> Path:
    """Build the wheel twice, and keep it if both have the same bytes."""
    hashes, content, name = set(), b"", ""
    for _ in range(2):
        with tempfile.TemporaryDirectory() as directory:
            built = build_wheel(archive, epoch, house, Path(directory))
            final = repaired(built, epoch, Path(directory) / "repaired")
            content, name = final.read_bytes(), final.name
            hashes.add(hashlib.sha256(content).hexdigest())
    assert len(hashes) == 1, f"two builds of {name} differ: {hashes}"
    target = DIST / name
    target.write_bytes(content)
    print(f"{name}: built twice, sha256 {hashes.pop()}")
    return target


def write_sbom(wheel: Path) -> None:
    """Write the bill of materials of an installation, with licences, in CycloneDX's format."""
    target = DIST / f"{wheel.name.removesuffix('.whl')}.cdx.json"
    with tempfile.TemporaryDirectory() as directory:
        venv.create(directory, with_pip=False)
        python = Path(directory) / "bin" / "python"
        run(sys.executable, "-m", "pip", "--python", python, "install", "-q", wheel)
        run(
            tool("cyclonedx-py"), "environment", "--pyproject", CHECKOUT / "pyproject.toml", "--output-reproducible",
            "--of", "JSON", "-o", target, python,
        )  # fmt: skip
    found = json.loads(target.read_text())
    found["metadata"]["component"] |= described(wheel)
    check_licences(found)
    target.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
    print(f"{target.name}: {len(found['components'])} components, each with its licence")


def described(wheel: Path) -> dict[str, Any]:
    """Return what the wheel is, and the code of others within it: Cython's, in the compiled
    modules."""
    version = wheel.name.split("-")[1]
    return {
        "version": version,
        "purl": f"pkg:pypi/aiokwire@{version}",
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}],
        "components": [
            {
                "type": "library",
                "name": "Cython",
                "version": cython_version(wheel),
                "description": "Its support code is part of the compiled modules.",
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        ],
    }


def cython_version(wheel: Path) -> str:
    """Return the version of Cython that wrote the C code of a wheel, as its modules name it."""
    with zipfile.ZipFile(wheel) as packed:
        module = next(name for name in packed.namelist() if name.endswith((".so", ".pyd")))
        named = re.search(rb"_cython_(\d+(?:_\w+)*)", packed.read(module))
    assert named, f"{module} does not name its version of Cython"
    return named[1].decode().replace("_", ".")


def check_licences(found: dict[str, Any]) -> None:
    """Check that every component of a bill of materials has a licence."""
    own = found["metadata"]["component"]
    bare = [part["name"] for part in (own, *own["components"], *found["components"]) if not part.get("licenses")]
    assert not bare, f"components without a licence: {bare}"


def try_runners(wheel: Path) -> None:
    """Run `aiokwire broker` from the wheel by `uvx` and by `pipx run`."""
    with tempfile.TemporaryDirectory() as directory:
        run_broker([str(tool("uvx")), "--python", sys.executable, "--from", str(wheel), "aiokwire"], Path(directory))
        run_broker([str(tool("pipx")), "run", "--spec", str(wheel), "aiokwire"], Path(directory))


def main() -> None:
    if "--sbom" in sys.argv:
        write_sbom(newest_wheel(DIST))
        return
    DIST.mkdir(exist_ok=True)
    # Wheels of other interpreters stay.
    for old in (*DIST.glob(f"aiokwire-*-{INTERPRETER}-*"), *DIST.glob("aiokwire-*.tar.gz")):
        old.unlink()
    epoch = commit_time()
    archive = build_sdist(epoch)
    with tempfile.TemporaryDirectory() as house:
        download_requirements(Path(house))
        wheel = build_twice(archive, epoch, Path(house))
    run(sys.executable, "-m", "twine", "check", "--strict", archive, wheel)
    run(sys.executable, CHECKOUT / "integration" / "wheel.py", DIST, "--index")
    try_runners(wheel)
    write_sbom(wheel)


if __name__ == "__main__":
    main()
