"""`python -m integration.spark` runs `kills.py`. Its child processes do not import this module."""

from __future__ import annotations

from integration.spark.kills import main

if __name__ == "__main__":
    main()
