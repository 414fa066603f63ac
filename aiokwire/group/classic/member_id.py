"""As whom the coordinator knows a member of a classic group. Used by `classic.py`. No I/O.

A coordinator that moves or restarts reads the group from its log, as the last complete generation was. Members that
were given another id since are in it under their former one, and nobody else would answer for that: every join would
wait until its session ends.
"""

from __future__ import annotations


class MemberId:
    """The id to join with; empty while the coordinator has to give one."""

    def __init__(self) -> None:
        self.current = ""
        self._former = ""  # of the last complete generation, after it was refused

    def given(self, member_id: str) -> None:
        """An answer to a join names it."""
        self.current = member_id

    def settled(self) -> None:
        """A generation is complete with it: the coordinator remembers this one."""
        self._former = ""

    def refused(self) -> None:
        """The coordinator does not know it."""
        if self._former and self._former != self.current:
            self._recall()
        else:
            self._former, self.current = self.current, ""

    def moved(self) -> None:
        """The group may have been read anew. An id that was given since is kept: the group waits for whoever has it."""
        if self._former and not self.current:
            self._recall()

    def left(self) -> str:
        """The member goes; gives the id that it had."""
        gone, self.current, self._former = self.current, "", ""
        return gone

    def _recall(self) -> None:
        self.current, self._former = self._former, ""
