"""The states of a transaction, with Kafka's names and numbers, and their transitions.

Empty --add--> Ongoing --commit--> PrepareCommit --marked--> CompleteCommit --add--> Ongoing ...
                      `-abort or fence-> PrepareAbort --marked--> CompleteAbort --add--> Ongoing ...
"""

from __future__ import annotations

import enum


class TransactionState(enum.IntEnum):
    """Numbered as in the records of `__transaction_state`."""

    EMPTY = 0  # the producer has its id and no transaction yet
    ONGOING = 1  # partitions were added: records may be in them
    PREPARE_COMMIT = 2  # decided and logged: the markers will be written in any case
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4  # every partition has its marker
    COMPLETE_ABORT = 5
    DEAD = 6  # the transactional id expired
    PREPARE_EPOCH_FENCE = 7  # in Kafka a fence that waits for its log; not used here

    @property
    def title(self) -> str:
        """The name in responses and filters."""
        return self.name.title().replace("_", "")


class TransactionEvent(enum.Enum):
    """The events of a transaction."""

    INIT = enum.auto()  # a producer requests its id and epoch
    ADD = enum.auto()  # partitions join
    COMMIT = enum.auto()
    ABORT = enum.auto()
    FENCE = enum.auto()  # the broker aborts it: it timed out, or a newer producer fenced it
    MARKED = enum.auto()  # the markers are written
    EXPIRE = enum.auto()  # the transactional id was not used for a long time


_S, _E = TransactionState, TransactionEvent

AT_REST = (_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT)
PREPARED = (_S.PREPARE_COMMIT, _S.PREPARE_ABORT)

TRANSITIONS: dict[tuple[TransactionState, TransactionEvent], TransactionState] = {
    **{(state, _E.INIT): _S.EMPTY for state in AT_REST},
    **{(state, _E.ADD): _S.ONGOING for state in (*AT_REST, _S.ONGOING)},
    **{(state, _E.EXPIRE): _S.DEAD for state in AT_REST},
    # KIP-890: a producer may abort without a transaction, to raise its epoch
    **{(state, _E.ABORT): _S.PREPARE_ABORT for state in (*AT_REST, _S.ONGOING)},
    (_S.ONGOING, _E.COMMIT): _S.PREPARE_COMMIT,
    (_S.ONGOING, _E.FENCE): _S.PREPARE_ABORT,
    (_S.PREPARE_COMMIT, _E.MARKED): _S.COMPLETE_COMMIT,
    (_S.PREPARE_ABORT, _E.MARKED): _S.COMPLETE_ABORT,
}
