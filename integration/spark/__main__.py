"""`python -m integration.spark`: the kills of `kills.py`. Its processes do not import this module again."""

from __future__ import annotations

from integration.spark.kills import main

if __name__ == "__main__":
    main()
