"""`python -m integration.bench.worker JOB`: run one job of one client.

Prints its figures as JSON.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
from dataclasses import asdict

from integration.bench.meter import Job


def main() -> int:
    job = Job(**json.loads(sys.argv[1]))
    client = importlib.import_module(f"integration.bench.clients.{job.client.replace('-', '_')}")
    gc.collect()
    figures = getattr(client, job.task)(job)
    print(json.dumps(asdict(figures)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
