"""Our assignors compared with Java's: equal or equally good results.

The user data is encoded in the same bytes, so that either client can lead a mixed group.
"""

from __future__ import annotations

import itertools
import random
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from aiokwire.group.assignors import ASSIGNORS, PartitionInfo
from aiokwire.group.subscription_format import MemberSubscription, encode_subscription
from aiokwire.types import TopicPartition
from integration.kafka import libs
from integration.kafka.fetch import MissingPrerequisite, java

SOURCE = Path(__file__).with_name("Assignors.java")
CASES = 400

Group = dict[str, MemberSubscription]
Topics = dict[str, list[PartitionInfo]]
Given = Mapping[str, list[TopicPartition]]


def ask_java(questions: list[str]) -> list[str]:
    try:
        command = [java(), "-Xmx256m", "-cp", f"{libs('4.3.1')}/*", str(SOURCE)]
    except MissingPrerequisite as missing:
        pytest.skip(f"missing {missing}")
    done = subprocess.run(command, input="\n".join(questions) + "\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = done.stdout.splitlines()
    assert len(answers) == len(questions)
    return answers


def question(name: str, members: Group, partitions: Topics) -> str:
    topics = ";".join(
        f"{topic}:{','.join('.'.join(sorted(info.racks)) for info in infos)}" for topic, infos in partitions.items()
    )
    people = ";".join(
        f"{one.member_id},{one.instance_id or ''},"
        f"{encode_subscription(one.topics, one.user_data, one.owned, one.generation, one.rack_id).hex()}"
        for one in members.values()
    )
    return f"assign {name} {topics} {people}"


def answer(text: str) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for entry in text.split(";"):
        member, _, listed = entry.partition("=")
        parts = (one.rpartition("-") for one in listed.split("+") if one)
        found[member] = sorted(TopicPartition(topic, int(number)) for topic, _, number in parts)
    return found


def random_topics(rng: random.Random, racked: bool) -> Topics:
    found: Topics = {}
    for name in rng.sample("tuvwx", rng.randint(1, 5)):
        count = rng.choice([1, 2, 3, 3, 6, 6, 9, rng.randint(1, 20)])
        spread = rng.choice([0, 1, 1, 2, 3]) if racked else 0
        found[name] = [PartitionInfo(name, number, frozenset(rng.sample("abc", spread))) for number in range(count)]
    return found


def random_members(rng: random.Random, topics: Topics, racked: bool) -> Group:
    found: Group = {}
    same = rng.random() < 0.5
    names = list(topics)
    chosen = rng.sample(names, rng.randint(1, len(names)))
    for number in range(rng.randint(1, 8)):
        member_id = f"{rng.choice('pqr')}{number}"
        found[member_id] = MemberSubscription(
            member_id=member_id,
            topics=tuple(sorted(chosen if same else rng.sample(names, rng.randint(1, len(names))))),
            instance_id=f"i{rng.randint(0, 99)}-{number}" if rng.random() < 0.3 else None,
            rack_id=rng.choice("abcd") if racked and rng.random() < 0.8 else None,
        )
    return found


@pytest.mark.parametrize("name", ["range", "roundrobin"])
@pytest.mark.parametrize("racked", [False, True])
def test_the_assignment_equals_that_of_java(name: str, racked: bool) -> None:
    rng = random.Random(f"{name} {racked}")
    cases = []
    for _ in range(CASES):
        topics = random_topics(rng, racked)
        cases.append((random_members(rng, topics, racked), topics))
    answers = ask_java([question(name, *case) for case in cases])
    for (members, topics), theirs in zip(cases, answers, strict=True):
        ours = ASSIGNORS[name]().assign(members, topics)
        assert {member: sorted(mine) for member, mine in ours.items()} == answer(theirs), (members, topics)


def with_memory(members: Group, before: Given, name: str, generation: int) -> Group:
    found: Group = {}
    for member_id, one in members.items():
        had = before.get(member_id)
        assignor = ASSIGNORS[name]()
        if had is not None:
            assignor.on_assignment(had, generation)
        owned = tuple(had or ()) if name == "cooperative-sticky" else ()
        number = generation if had is not None else -1
        found[member_id] = one._replace(
            owned=owned, generation=number, user_data=assignor.user_data(one.topics) if had is not None else b""
        )
    return found


def unevenness(given: Given) -> int:
    return sum(len(mine) ** 2 for mine in given.values())


def kept(before: Given, after: Given) -> int:
    return sum(len(set(mine) & set(after.get(member, ()))) for member, mine in before.items())


def near(members: Group, topics: Topics, given: Given) -> int:
    racks = {info.topic_partition: info.racks for infos in topics.values() for info in infos}
    return sum(members[member].rack_id in racks[tp] for member, mine in given.items() for tp in mine)


@pytest.mark.parametrize("racked", [False, True])
def test_sticky_is_as_balanced_as_javas_and_moves_no_more_partitions(racked: bool) -> None:
    """Histories of three joins: Java reads our last assignment from the user data."""
    rng = random.Random(f"sticky {racked}")
    questions, results = [], []
    for _ in range(CASES):
        topics = random_topics(rng, racked)
        before: Given = {}
        members: Group = {}
        for generation in range(1, 4):
            fresh = random_members(rng, topics, racked)
            stay = rng.sample(sorted(members), rng.randint(0, len(members)))
            members = with_memory(fresh | {one: members[one] for one in stay}, before, "sticky", generation)
            after = ASSIGNORS["sticky"]().assign(members, topics)
            questions.append(question("sticky", members, topics))
            results.append((members, topics, before, after))
            before = after
    ours_kept = theirs_kept = ours_near = theirs_near = better = 0
    for (members, topics, before, ours), text in zip(results, ask_java(questions), strict=True):
        theirs = answer(text)
        assert sum(map(len, ours.values())) == sum(map(len, theirs.values()))
        assert unevenness(ours) <= unevenness(theirs), (members, topics)
        if unevenness(ours) == unevenness(theirs):
            ours_kept += kept(before, ours)
            theirs_kept += kept(before, theirs)
            ours_near += near(members, topics, ours)
            theirs_near += near(members, topics, theirs)
        else:
            better += 1
    figures = f"kept {ours_kept} (Java {theirs_kept}), near {ours_near} (Java {theirs_near}), {better} more even"
    print(f"{len(results)} assignments, racked={racked}: {figures}")
    if racked:
        assert ours_near >= theirs_near, figures
    else:
        assert ours_kept >= theirs_kept, figures


@pytest.mark.parametrize(("first_lead", "then"), list(itertools.product(["ours", "Java"], repeat=2)))
def test_a_cooperative_group_becomes_stable_under_either_leader(first_lead: str, then: str) -> None:
    """The leader changes after the first round.

    Many groups share a round, so that it needs one call to Java.
    """
    rng = random.Random(f"cooperative {first_lead} {then}")
    groups: list[tuple[Group, Topics, Given]] = []
    for _ in range(CASES // 4):
        topics = random_topics(rng, racked=True)
        first = random_members(rng, topics, racked=True)
        start = ASSIGNORS["sticky"]().assign(first, topics)
        stay = rng.sample(sorted(first), rng.randint(0, len(first)))
        groups.append((random_members(rng, topics, racked=True) | {one: first[one] for one in stay}, topics, start))
    for round_number in itertools.count(1):
        assert round_number < 12, f"{len(groups)} groups are not stable"
        asked = [
            (with_memory(members, before, "cooperative-sticky", round_number), topics, before)
            for members, topics, before in groups
        ]
        given: list[Given]
        if (first_lead if round_number == 1 else then) == "Java":
            texts = ask_java([question("cooperative-sticky", members, topics) for members, topics, _ in asked])
            given = [answer(text) for text in texts]
        else:
            given = [ASSIGNORS["cooperative-sticky"]().assign(members, topics) for members, topics, _ in asked]
        groups = []
        for (members, topics, before), after in zip(asked, given, strict=True):
            for (one, had), (other, gets) in itertools.product(before.items(), after.items()):
                assert one == other or one not in members or not set(had) & set(gets), "assigned before it was revoked"
            if any(set(before.get(one, ())) - set(after[one]) for one in members):
                groups.append((members, topics, after))
            else:
                wanted = {topic for one in members.values() for topic in one.topics}
                everything = {info.topic_partition for topic in wanted for info in topics[topic]}
                assert everything == {tp for mine in after.values() for tp in mine}
        if not groups:
            return


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_members_encode_their_assignment_in_the_same_bytes_as_java(name: str) -> None:
    had = [TopicPartition("t", 3), TopicPartition("t", 0), TopicPartition("one-topic", 12)]
    ours = ASSIGNORS[name]()
    ours.on_assignment(had[:2], 42)
    (theirs,) = ask_java([f"remember {name} 42 t-0+t-3"])
    assert ours.user_data(["t"]).hex() == theirs
