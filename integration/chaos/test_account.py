"""Faults that the account of a group's records must detect."""

from __future__ import annotations

from integration.chaos.account import Account, Pauses, Resumed
from integration.chaos.moment import Moment


def handed(account: Account, member: str, *numbers: int, partition: int = 0) -> None:
    for number in numbers:
        account.received(member, partition, number, sent_at=Moment(0.0), now=Moment(float(number)))


def test_records_in_order_are_not_a_fault() -> None:
    account = Account(2)
    handed(account, "a", 0, 1, 2)
    handed(account, "b", 0, 1, 2, partition=1)
    assert (account.faults, account.lost(3), account.duplicates, account.records) == ([], 0, 0, 6)
    assert account.has_all(3)
    assert not account.has_all(4)


def test_records_that_no_member_received_are_lost() -> None:
    account = Account(2)
    handed(account, "a", 0, 1)
    assert account.lost(3) == 1 + 3


def test_a_member_that_continues_where_another_stopped_is_not_a_fault() -> None:
    account = Account(1)
    handed(account, "a", 0, 1)
    handed(account, "b", 2, 3)
    assert (account.faults, account.duplicates) == ([], 0)


def test_a_new_member_may_start_earlier_and_its_records_count_as_duplicates() -> None:
    account = Account(1)
    handed(account, "a", 0, 1, 2)
    handed(account, "b", 1, 2, 3)
    assert (account.faults, account.duplicates, account.lost(4)) == ([], 2, 0)


def test_a_new_member_that_skips_records_is_a_fault() -> None:
    account = Account(1)
    handed(account, "a", 0, 1)
    handed(account, "b", 3)
    assert account.faults == ["b, partition 0: starts at number 3, but only 2 were received"]
    assert account.lost(4) == 1


def test_records_received_before_and_reported_later_are_not_skipped() -> None:
    account = Account(1)
    handed(account, "a", 0, 1)
    handed(account, "b", 4, 5)
    handed(account, "a", 2, 3)
    handed(account, "b", 6)
    assert (account.faults, account.lost(7), account.duplicates) == ([], 0, 0)


def test_records_skipped_and_received_later_are_a_fault() -> None:
    account = Account(1)
    handed(account, "a", 0)
    handed(account, "b", 2)
    account.received("c", 0, 1, sent_at=Moment(0.0), now=Moment(2.5))
    assert account.faults == ["b, partition 0: starts at number 2, but only 1 were received"]
    assert account.lost(3) == 0


def test_a_member_that_goes_back_is_a_fault_except_after_an_assignment() -> None:
    account = Account(1)
    handed(account, "a", 0, 1, 2)
    account.assigned("a", [0])
    handed(account, "a", 1)
    assert account.faults == []
    handed(account, "a", 1)
    assert account.faults == ["a, partition 0: number 1 follows 1"]


def test_a_pause_counts_only_while_a_record_is_available() -> None:
    account = Account(1)
    account.received("a", 0, 0, sent_at=Moment(0.0), now=Moment(1.0))
    account.received("a", 0, 1, sent_at=Moment(4.0), now=Moment(4.5))
    account.received("b", 0, 2, sent_at=Moment(4.1), now=Moment(6.5))
    account.received("b", 0, 3, sent_at=Moment(4.2), now=Moment(6.6))
    pauses = account.new_phase()
    assert (pauses.stayed, pauses.moved) == ([0.5], [2.0])
    assert account.new_phase().moved == [0.0]


def test_a_wait_for_a_core_is_not_part_of_its_own_pause() -> None:
    account = Account(1)
    account.received("a", 0, 0, sent_at=Moment(0.0), now=Moment(1.0, 0.5))
    account.received("a", 0, 1, sent_at=Moment(0.0), now=Moment(2.0, 1.25))
    pauses = account.new_phase()
    assert (pauses.stayed, pauses.own) == ([1.0], [0.25])


def test_each_partition_resumes_with_its_first_record_after_the_return() -> None:
    account = Account(2)
    handed(account, "a", 0)
    account.broker_returned(5.0)
    account.received("a", 0, 1, sent_at=Moment(0.0), now=Moment(4.0))
    assert account.resumed() == []
    account.received("a", 0, 2, sent_at=Moment(0.0), now=Moment(7.0, 0.5))
    account.received("a", 0, 3, sent_at=Moment(0.0), now=Moment(8.0, 0.5))
    account.received("b", 1, 0, sent_at=Moment(0.0), now=Moment(9.0, 3.0))
    assert account.resumed() == [Resumed(2.0, 0.5), Resumed(4.0, 0.0)]
    assert account.resumed([1]) == [Resumed(4.0, 0.0)]
    account.broker_returned(10.0)
    assert account.resumed() == []


def test_the_delay_of_a_member_is_measured_against_a_reader_without_a_group() -> None:
    account = Account(1)
    for number, came in enumerate((1.0, 5.0, 6.0, 7.0)):
        account.seen(0, number, now=Moment(came))
    account.received("a", 0, 0, sent_at=Moment(0.0), now=Moment(4.0))
    account.received("a", 0, 1, sent_at=Moment(0.0), now=Moment(7.5, 0.5))
    account.received("b", 0, 2, sent_at=Moment(0.0), now=Moment(9.0, 0.5))
    account.received("b", 0, 3, sent_at=Moment(0.0), now=Moment(9.0, 0.5))
    assert account.new_phase().late == [2.0], "only of a member that owned the partition when the record arrived"
    account.received("b", 0, 4, sent_at=Moment(0.0), now=Moment(9.5))
    account.seen(0, 4, now=Moment(10.0))
    assert account.new_phase().late == [0.0]


def test_a_committed_record_received_again_is_a_fault() -> None:
    account = Account(1)
    handed(account, "a", 0, 1, 2, 3)
    account.committed(0, 2, now=Moment(5.0))
    account.received("b", 0, 2, sent_at=Moment(0.0), now=Moment(6.0))
    assert account.faults == []
    account.received("c", 0, 1, sent_at=Moment(0.0), now=Moment(7.0))
    assert account.faults == ["c, partition 0: 1 was received again, after 2 was committed"]


def test_the_longest_pauses_of_two_phases_are_taken_by_partition() -> None:
    one, two = (
        Pauses([1.0, 2.0], [0.0, 0.0], [0.0, 0.0], [3.0, 1.0]),
        Pauses([2.0, 1.0], [0.0, 0.5], [0.0, 0.0], [1.0, 2.0]),
    )
    assert one.longest(two) == Pauses([2.0, 2.0], [0.0, 0.5], [0.0, 0.0], [3.0, 2.0])
