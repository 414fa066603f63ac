"""Random histories of a cluster with faults. `python -m tests.simulation.explore` plays more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.history import play

ROOT = Path(__file__).parents[2]

# Seeds that found bugs: 5 and 7 differed between two runs (the order of sets), 17 and 22 filled the disk at a restart,
# 1013 lost power under a consumer that had read unflushed records, 1119 stopped a broker with pending responses.
SEEDS = [1, 5, 7, 17, 22, 1013, 1119, *range(100, 120)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_keeps_every_guarantee(seed: int) -> None:
    outcome = play(seed)
    assert not outcome.wrong, f"seed {seed}: {outcome.wrong}"


@pytest.mark.parametrize("seed", [5, 7])
def test_the_same_seed_gives_the_same_history(seed: int) -> None:
    assert play(seed).trace_hash == play(seed).trace_hash, f"seed {seed}"


def test_the_same_seed_gives_the_same_history_in_another_process() -> None:
    """The order of sets of strings, which differs between processes, has no effect."""
    script = "from tests.simulation.history import play; print(play(3).trace_hash)"
    hashes = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=18,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert hashes[0] == hashes[1] != ""


def test_different_seeds_give_different_histories() -> None:
    assert play(5).trace_hash != play(7).trace_hash
