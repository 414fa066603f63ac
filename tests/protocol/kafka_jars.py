"""Kafka's jars for tests. A missing jar is fetched if CI=true; otherwise the test is skipped."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tools.protocol_generator.jars import fetched, path_of


def jar(artifact: str) -> Path:
    path = path_of(artifact)
    if path.exists() or os.environ.get("CI") == "true":
        return fetched(artifact)
    pytest.skip(f"{path.name} is not in build/jars: `make generate` brings Kafka's definitions")


def java() -> str:
    found = shutil.which("java")
    if found is None and os.environ.get("CI") != "true":
        pytest.skip("there is no Java")
    assert found is not None, "CI needs Java"
    return found
