from __future__ import annotations

import os

import pytest

from aiokwire.cluster import ClientConfig
from aiokwire.spark.session import MOST_SESSIONS, Session, session_for

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("no_sessions")]


def config(servers: str, client_id: str = "a") -> ClientConfig:
    return ClientConfig(bootstrap_servers=servers, client_id=client_id)


def test_a_client_is_reused_by_the_next_task(servers: str) -> None:
    first = session_for(config(servers))
    assert session_for(config(servers)) is first
    assert session_for(config(servers, "b")) is not first


def test_a_closed_client_is_replaced(servers: str) -> None:
    first = session_for(config(servers))
    first.wait(first.client.close())
    second = session_for(config(servers))
    assert second is not first
    assert not second.closed


def test_the_least_recently_used_client_is_closed(servers: str) -> None:
    sessions = [session_for(config(servers, str(number))) for number in range(MOST_SESSIONS)]
    session_for(config(servers, "0"))
    session_for(config(servers, "one more"))
    assert [session.closed for session in sessions] == [False, True, False, False]


def test_a_forked_process_opens_its_own_client_and_keeps_the_parents_open(servers: str) -> None:
    parents: Session = session_for(config(servers))
    child = os.fork()
    if not child:
        own = session_for(config(servers))
        own.wait(own.client.metadata.update(10))
        os._exit(0 if own is not parents else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert parents.wait(parents.client.metadata.update(10)).brokers
