"""Check that the wheel works without the checkout.

`python integration/wheel.py DIST` installs the newest wheel of DIST into a new environment and
sends records through its broker; `make wheel` calls it. The dependencies come from this
interpreter's environment.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

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


def main() -> None:
    dist = Path(sys.argv[1])
    checkout = Path(__file__).resolve().parents[1]
    wheel = max(dist.glob("aiokwire-*.whl"), key=lambda path: path.stat().st_mtime)
    with tempfile.TemporaryDirectory() as directory:
        environment = Path(directory)
        venv.create(environment, with_pip=False)
        python = environment / "bin" / "python"
        install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", str(wheel)]
        subprocess.run(install, check=True)
        site = next((environment / "lib").glob("python*/site-packages"))
        # Behind the wheel's own directory, and without .pth files: the checkout's editable install is not visible.
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        subprocess.run([str(python), "-c", TRIAL, str(checkout)], check=True, cwd=directory, timeout=60)


if __name__ == "__main__":
    main()
