"""The generated modules match Kafka's definitions, and two releases are merged correctly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.protocol_generator.__main__ import generate, main, stale_files
from tools.protocol_generator.definitions import Field, Message, Versions, join, read_jar, snake_case
from tools.protocol_generator.jars import RELEASES, kafka_clients

from .protocol.kafka_jars import jar


@pytest.fixture
def jars() -> list[Path]:
    return [jar(kafka_clients(release)) for release in RELEASES]


def test_the_committed_modules_are_up_to_date(jars: list[Path]) -> None:
    assert main(["--check", "--jar", str(jars[0]), "--jar", str(jars[1])]) == 0


def test_a_changed_module_is_stale(jars: list[Path]) -> None:
    wanted = generate(*jars)
    path = next(path for path in wanted if path.name == "produce.py")
    wanted[path] += "# changed\n"
    assert stale_files(wanted) == [path]


def test_no_sentence_of_the_definitions_is_copied(jars: list[Path]) -> None:
    text = "".join(generate(*jars).values())
    assert "The topic name" not in text
    assert "about" not in text


def test_each_release_contributes_the_versions_it_defines(jars: list[Path]) -> None:
    newer, older = map(read_jar, jars)
    joined = join(newer, older)
    assert newer["ProduceRequest"].versions == Versions(3, 13)
    assert joined["ProduceRequest"].versions == Versions(0, 13)
    assert joined["LeaderAndIsrRequest"].versions == older["LeaderAndIsrRequest"].versions
    assert joined["ShareFetchResponse"].versions == Versions(1, 2)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("TopicData", "topic_data"),
        ("timeoutMs", "timeout_ms"),
        ("isKRaftController", "is_kraft_controller"),
        ("V0Host", "v0_host"),
        ("IsrWithEpochs", "isr_with_epochs"),
    ],
)
def test_names_become_snake_case(name: str, expected: str) -> None:
    assert snake_case(name) == expected


def field(name: str, versions: Versions) -> Field:
    return Field(name, "int32", False, versions, Versions(0, -1), None, False, None, ())


def message(versions: Versions, *fields: Field, unstable_from: int | None = None) -> Message:
    return Message("XRequest", "request", 1, versions, versions.min, 9, unstable_from, (), fields)


def test_a_dropped_field_is_restored_at_its_position() -> None:
    newer = message(Versions(2, 5), field("a", Versions(0, 99)), field("c", Versions(2, 99)))
    older = message(
        Versions(0, 3), field("a", Versions(0, 99)), field("b", Versions(0, 1)), field("c", Versions(2, 99))
    )
    joined = join({"XRequest": newer}, {"XRequest": older})["XRequest"]
    assert [(item.name, item.versions) for item in joined.fields] == [
        ("a", Versions(0, 99)),
        ("b", Versions(0, 1)),
        ("c", Versions(2, 99)),
    ]
    assert (joined.versions, joined.served_from) == (Versions(0, 5), 2)


def test_a_field_of_the_older_release_is_left_out_if_the_newer_one_defines_all_its_versions() -> None:
    newer = message(Versions(1, 5), field("a", Versions(0, 99)))
    older = message(Versions(0, 3), field("a", Versions(0, 99)), field("gone", Versions(2, 3)))
    assert [item.name for item in join({"XRequest": newer}, {"XRequest": older})["XRequest"].fields] == ["a"]


def test_versions_dropped_while_unstable_stay_dropped() -> None:
    newer, older = message(Versions(1, 2), field("a", Versions(0, 99))), message(Versions(0, 0), unstable_from=0)
    assert join({"XRequest": newer}, {"XRequest": older})["XRequest"].versions == Versions(1, 2)


def test_version_ranges_with_a_gap_cannot_be_merged() -> None:
    assert Versions(0, 1) | Versions(2, 5) == Versions(0, 5)
    with pytest.raises(ValueError, match="gap"):
        _ = Versions(0, 1) | Versions(3, 5)
