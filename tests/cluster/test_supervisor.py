"""The task that owns a task group."""

from __future__ import annotations

import anyio
import pytest

from aiokwire.cluster.supervisor import Supervisor
from aiokwire.errors import ClosedError


async def test_tasks_run_until_the_supervisor_stops() -> None:
    ends: list[BaseException | None] = []
    ran: list[str] = []

    async def work(name: str) -> None:
        ran.append(name)
        try:
            await anyio.sleep_forever()
        finally:
            ran.append(f"{name} ended")

    supervisor = Supervisor("test", ends.append)
    with pytest.raises(ClosedError):
        supervisor.spawn(work, "too early")
    await supervisor.start()
    supervisor.spawn(work, "a")
    await anyio.lowlevel.checkpoint()
    supervisor.stop()
    await supervisor.wait()
    assert ran == ["a", "a ended"]
    assert ends == [None]
    with pytest.raises(ClosedError):
        supervisor.spawn(work, "too late")


async def test_a_failing_task_ends_its_siblings_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    ends: list[BaseException | None] = []
    cancelled: list[bool] = []

    async def sibling() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append(True)

    async def broken() -> None:
        await anyio.lowlevel.checkpoint()
        raise ZeroDivisionError("a fault")

    supervisor = Supervisor("test", ends.append)
    await supervisor.start()
    supervisor.spawn(sibling)
    supervisor.spawn(broken)
    await supervisor.wait()
    assert [type(end) for end in ends] == [ZeroDivisionError]
    assert cancelled == [True]
    assert "a fault" in caplog.text
