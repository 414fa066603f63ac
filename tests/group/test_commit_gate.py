"""Commits and joins take turns."""

from __future__ import annotations

import anyio

from aiokwire.group import CommitGate


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


async def test_a_join_waits_for_the_commits_on_their_way_but_not_for_ever() -> None:
    gate = CommitGate()
    answered = anyio.Event()
    closed = anyio.Event()

    async def commit() -> None:
        async with gate.passing():
            await answered.wait()

    async def join(patience: float) -> None:
        await gate.close(patience)
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
        assert not gate.is_open
        answered.set()


async def test_a_commit_that_is_cancelled_counts_no_more() -> None:
    gate = CommitGate()
    with anyio.CancelScope() as scope:
        async with gate.passing():
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    with anyio.fail_after(5):
        await gate.close(10.0)
