"""Commits and joins exclude each other."""

from __future__ import annotations

import anyio

from aiokwire.group.commit_gate import CommitGate


async def settle() -> None:
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


async def test_a_commit_waits_for_the_end_of_a_join() -> None:
    gate = CommitGate()
    await gate.close(1.0)
    passed: list[int] = []

    async def commit() -> None:
        async with gate.passing():
            passed.append(1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(commit)
        await settle()
        assert not passed
        gate.open()
        await settle()
        assert passed


async def test_a_join_waits_for_commits_in_flight_for_a_limited_time() -> None:
    gate = CommitGate()
    answered = anyio.Event()
    closed = anyio.Event()

    async def commit() -> None:
        async with gate.passing():
            await answered.wait()

    async def join(timeout: float) -> None:
        await gate.close(timeout)
        closed.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(commit)
        await settle()
        tasks.start_soon(join, 5.0)
        await settle()
        assert not closed.is_set()
        answered.set()
        await closed.wait()
        answered = anyio.Event()
        gate.open()
        tasks.start_soon(commit)
        await settle()
        await gate.close(0.01)
        with anyio.move_on_after(0.01) as waiting:
            async with gate.passing():
                pass
        assert waiting.cancelled_caught, "the gate closes without the response"
        answered.set()


async def test_a_cancelled_commit_is_not_waited_for() -> None:
    gate = CommitGate()
    with anyio.CancelScope() as scope:
        async with gate.passing():
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    with anyio.fail_after(5):
        await gate.close(10.0)


async def test_commits_pass_while_the_join_waits_for_other_members() -> None:
    gate = CommitGate()
    await gate.close(1.0)
    gate.open_early()
    with anyio.fail_after(5):
        async with gate.passing():
            gate.close_early()
    with anyio.move_on_after(0.01) as waiting:
        async with gate.passing():
            pass
    assert waiting.cancelled_caught, "the others have joined"


async def test_the_end_of_the_wait_does_not_close_an_open_gate() -> None:
    gate = CommitGate()
    gate.close_early()
    with anyio.fail_after(5):
        async with gate.passing():
            pass
