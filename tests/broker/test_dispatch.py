"""The table of APIs: the versions of Kafka 4.3.1, and a handler for each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from aiokwire.broker import dispatch
from aiokwire.broker.dispatch import APIS, Api
from aiokwire.protocol import ApiKey, request_type


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.module)
def test_the_versions_advertised_are_kafkas(api: Api) -> None:
    kind = request_type(api.key)
    last = kind.VERSIONS.max if kind.UNSTABLE_FROM is None else kind.UNSTABLE_FROM - 1
    first = 0 if api.key is ApiKey.PRODUCE else kind.SERVED_FROM
    assert (api.first, api.last) == (first, last)
    assert "broker" in kind.LISTENERS


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.module)
def test_every_version_served_can_be_read(api: Api) -> None:
    kind = request_type(api.key)
    assert kind.VERSIONS.min <= api.served_from <= api.first
    assert kind.VERSIONS.min == api.served_from, "nothing that could be read is turned away"


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.module)
def test_every_handler_names_its_versions_in_its_docstring(api: Api) -> None:
    handler = dispatch.handler_of(api)
    head = sys.modules[handler.__module__].__doc__ or ""
    name = request_type(api.key).__name__.removesuffix("Request")
    versions = f"v{api.served_from}-{api.last}" if api.served_from != api.last else f"v{api.last}"
    assert head.startswith(f"{name}: {versions}\n")


def test_every_handler_module_is_in_the_table() -> None:
    folder = Path(dispatch.__file__).parent / "handlers"
    modules = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert modules == {api.module for api in APIS.values()}


def test_messages_and_handlers_load_at_their_first_use() -> None:
    script = (
        "import sys, aiokwire.broker\n"
        "early = [m for m in sys.modules if m.startswith('aiokwire.broker.handlers.')]\n"
        "assert not early, early\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
