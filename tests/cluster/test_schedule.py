"""When the metadata is refreshed."""

from __future__ import annotations

import math
import random

from aiokwire.backoff import Backoff
from aiokwire.cluster.schedule import RefreshSchedule


def schedule() -> RefreshSchedule:
    backoff = Backoff(0.1, 1.0, jitter=0.0, rng=random.Random(0))
    return RefreshSchedule(min_interval=0.1, max_age=300.0, backoff=backoff)


def test_the_first_refresh_is_due_at_once() -> None:
    assert schedule().due() == -math.inf


def test_after_a_refresh_the_maximum_age_decides() -> None:
    plan = schedule()
    plan.succeeded(plan.start(), 10.0, changed=True)
    assert plan.due() == 310.0


def test_a_request_waits_for_the_interval_and_an_urgent_one_does_not() -> None:
    plan = schedule()
    plan.succeeded(plan.start(), 10.0, changed=True)
    plan.request("lost a leader", 10.01)
    assert plan.due() == 10.1
    plan.request("a new topic", 10.02, urgent=True)
    assert plan.due() == -math.inf


def test_equal_requests_share_the_refresh_that_starts_next() -> None:
    plan = schedule()
    running = plan.start()
    first, second = plan.request("a", 0.0), plan.request("b", 0.0)
    assert first == second == running + 1, "an answer that is under way may be older than the request"
    assert plan.reason == "a"


def test_the_interval_grows_while_refreshes_change_nothing() -> None:
    plan = schedule()
    now = 10.0
    pauses = []
    for _ in range(6):
        plan.succeeded(plan.start(), now, changed=False)
        plan.request("still no leader", now)
        pauses.append(round(plan.due() - now, 3))
        now = plan.due()
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    plan.succeeded(plan.start(), now, changed=True)
    plan.request("again", now)
    assert round(plan.due() - now, 3) == 0.1


def test_a_request_after_a_quiet_time_resets_the_interval() -> None:
    plan = schedule()
    for now in (1.0, 2.0, 3.0):
        plan.succeeded(plan.start(), now, changed=False)
    plan.request("much later", 60.0)
    plan.succeeded(plan.start(), 60.0, changed=False)
    plan.request("more", 60.0)
    assert round(plan.due() - 60.0, 3) == 0.1


def test_failures_back_off_even_for_urgent_requests_and_are_tried_again() -> None:
    plan = schedule()
    pauses = []
    now = 0.0
    for _ in range(5):
        plan.start()
        plan.failed(now)
        plan.request("a new topic", now, urgent=True)
        pauses.append(round(plan.due() - now, 3))
        now = plan.due()
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0]
    assert plan.reason is not None
