"""A short run of `integration.chaos.reauth` on both brokers."""

from __future__ import annotations

import pytest
import uvloop

from integration.chaos.reauth import Load, Outcome, line, opened, verdict

SECONDS = 10.0  # two re-authentications of each connection


@pytest.mark.parametrize("name", ["embedded", "4.3.1"])
def test_clients_reauthenticate_under_load_without_a_closed_connection(name: str) -> None:
    with opened(name, 4_000) as options:
        outcome = uvloop.run(Load(options, SECONDS, 2_000).run())
    print(line(name, outcome))
    assert not verdict(Outcome(latencies=[60.0]), outcome)
    assert outcome.sent
    assert outcome.committed
