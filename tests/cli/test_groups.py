"""The verbs for groups, against a real broker process."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def group(run: Run, topic: str, tmp_path: Path) -> str:
    """Create a group at offset 2 of both partitions of a topic with 4 records in each."""
    source = tmp_path / "lines"
    source.write_text("1\n2\n3\n4\n")
    for partition in "01":
        assert run("produce", topic, source, "-p", partition).exit_code == 0
    name = f"g-{topic}"
    begun = run("groups", "reset", name, "--topic", topic, "--to-offset", "2", "--yes")
    assert begun.exit_code == 0, begun.output
    return name


def committed(run: Run, group: str) -> dict[int, int]:
    described = json.loads(run("groups", "describe", group, "--json").stdout)
    return {row["partition"]: row["committed"] for row in described["partitions"]}


def test_groups_are_listed_and_described(run: Run, group: str, topic: str) -> None:
    listed = [json.loads(line) for line in run("groups", "list", "--json", "--state", "Empty").stdout.splitlines()]
    assert {
        "group_id": group, "protocol_type": "", "state": "Empty", "type": "classic", "coordinator": 1,
    } in listed  # fmt: skip
    assert group in run("groups", "list").stdout
    described = json.loads(run("groups", "describe", group, "--json").stdout)
    assert (described["state"], described["members"]) == ("Empty", [])
    assert described["partitions"] == [
        {"topic": topic, "partition": n, "committed": 2, "end": 4, "lag": 2, "member": None} for n in (0, 1)
    ]
    table = run("groups", "describe", group)
    assert table.exit_code == 0
    assert table.stdout.splitlines()[0].split("\t")[:3] == ["group", "state", "topic"]
    assert f"{group}\tEmpty\t{topic}\t0\t2\t4\t2\t-\n" in table.stdout


def test_a_missing_group_is_an_error_and_the_others_are_described(run: Run, group: str) -> None:
    described = run("groups", "describe", "missing", group, "--json")
    assert described.exit_code == 1
    assert "GROUP_ID_NOT_FOUND" in described.stderr
    assert json.loads(described.stdout)["group_id"] == group


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 4),
        (["--to-current"], 2),
        (["--shift", "-1"], 1),
        (["--to-offset", "3"], 3),
        (["--to-time", "2000-01-01T00:00:00+00:00"], 0),
        (["--to-time", "99999999999999"], 4),
    ],
    ids=["earliest", "latest", "current", "shift", "offset", "time", "late"],
)
def test_a_group_is_reset(run: Run, group: str, topic: str, way: list[str], expected: int) -> None:
    dry_run = run("groups", "reset", group, *way, "--dry-run", "--csv")
    assert dry_run.stdout == f"{topic},0,{expected}\n{topic},1,{expected}\n"
    assert committed(run, group) == {0: 2, 1: 2}
    assert run("groups", "reset", group, *way, "-t", f"{topic}:1", "--yes").exit_code == 0
    assert committed(run, group) == {0: 2, 1: expected}


def test_reset_reads_the_plan_that_it_prints(run: Run, group: str, topic: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text(run("groups", "reset", group, "--shift", "1", "--dry-run", "--csv").stdout)
    assert run("groups", "reset", group, "--from-file", plan, "--yes").exit_code == 0
    assert committed(run, group) == {0: 3, 1: 3}
    plan.write_text(f"{topic},0,1\n{topic},one,1\n")
    refused = run("groups", "reset", group, "--from-file", plan, "--yes")
    assert refused.exit_code == 2
    assert "line 2" in refused.stderr


def test_a_reset_needs_exactly_one_target_and_a_confirmation(run: Run, group: str) -> None:
    assert run("groups", "reset", group).exit_code == 2
    assert run("groups", "reset", group, "--to-earliest", "--to-latest").exit_code == 2
    assert run("groups", "reset", group, "--to-time", "noon").exit_code == 2
    assert run("groups", "reset", group, "--to-earliest", "-t", "t:x").exit_code == 2
    assert run("groups", "reset", group, "--to-earliest").exit_code == 1, "the user did not confirm"
    assert committed(run, group) == {0: 2, 1: 2}


def test_offsets_and_groups_are_deleted(run: Run, group: str, topic: str) -> None:
    assert run("groups", "delete", group, "--offsets", f"{topic}:0", "--yes").stdout == (
        f"deleted the offset of {topic}[0] in {group}\n"
    )
    assert committed(run, group) == {1: 2}
    assert run("groups", "delete", group, "--members", "--yes").exit_code == 0
    assert run("groups", "delete", group, "--members", "--offsets", topic).exit_code == 2
    deleted = run("groups", "delete", group, "missing", "--yes")
    assert (deleted.exit_code, deleted.stdout) == (1, f"deleted {group}\n")
    assert "missing" in deleted.stderr
    assert group not in run("groups", "list").stdout


def test_a_group_can_be_reset_to_offset_0(run: Run, group: str) -> None:
    """Regression: 0 was treated as a missing option."""
    reset = run("groups", "reset", group, "--to-offset", "0", "--yes")
    assert reset.exit_code == 0, reset.output
    assert committed(run, group) == {0: 0, 1: 0}


@pytest.mark.usefixtures("default_sigint")
def test_ctrl_c_and_sigterm_end_a_reset_that_waits_for_its_confirmation(
    run: Run, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the prompt blocked the event loop, which handled the signals."""
    at_the_prompt = []

    def confirm(*_: object, **__: object) -> None:
        at_the_prompt.append((signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)))
        raise click.Abort

    monkeypatch.setattr(click, "confirm", confirm)
    assert run("groups", "reset", group, "--to-latest").exit_code == 1
    assert at_the_prompt == [(signal.default_int_handler, signal.SIG_DFL)]
    assert committed(run, group) == {0: 2, 1: 2}


@pytest.mark.parametrize(
    ("partitions", "complaint"),
    [("nosuch", "'nosuch'"), ("nosuch:0", "'nosuch'"), ("orders:9", "topic orders has partitions 0 to 2, not 9")],
    ids=["topic", "topic of a partition", "partition"],
)
def test_a_reset_refuses_a_missing_topic_or_partition_at_once(run: Run, partitions: str, complaint: str) -> None:
    """Regression: it waited 60 s for the topic."""
    refused = run("groups", "reset", "g", "--to-latest", "-t", partitions, "--yes")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: ")
    assert refused.stderr.count("\n") == 1
    assert complaint in refused.stderr


@pytest.mark.parametrize(
    ("way", "warning"),
    [
        (["--to-offset", "999999"], "offset 999999 is outside the log, the end is 4"),
        (["--shift", "-7"], "offset -5 is outside the log, the start is 0"),
    ],
    ids=["offset", "shift"],
)
def test_the_plan_of_a_reset_names_offsets_outside_the_log(
    run: Run, group: str, topic: str, way: list[str], warning: str
) -> None:
    planned = run("groups", "reset", group, *way, "--dry-run")
    assert planned.stderr == f"{topic}[0]: {warning}\n{topic}[1]: {warning}\n"
    assert run("groups", "reset", group, "--to-offset", "4", "--dry-run").stderr == ""


def test_a_reset_refuses_a_file_that_names_a_missing_partition(run: Run, tmp_path: Path) -> None:
    """Regression: the line was left out of the plan without a message."""
    plan = tmp_path / "plan.csv"
    plan.write_text("orders,0,0\norders,9,0\n")
    refused = run("groups", "reset", "g", "--from-file", plan, "--dry-run")
    assert (refused.exit_code, refused.stderr) == (1, "error: topic orders has partitions 0 to 2, not 9\n")
