"""The result of a call for several items: a value or an error for each."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from aiokwire.errors import BrokerError

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Results(Mapping[K, T], Generic[K, T]):
    """A mapping of results that raises the error of a failed item when it is read.

    `errors` has the failed items, `succeeded` the others; `check()` raises the first error.
    """

    __slots__ = ("errors", "succeeded")

    def __init__(self, succeeded: dict[K, T], errors: dict[K, BrokerError]) -> None:
        self.succeeded: dict[K, T] = succeeded
        self.errors: dict[K, BrokerError] = errors

    def __getitem__(self, key: K) -> T:
        error = self.errors.get(key)
        if error is not None:
            raise error
        return self.succeeded[key]

    def __iter__(self) -> Iterator[K]:
        yield from self.succeeded
        yield from self.errors

    def __len__(self) -> int:
        return len(self.succeeded) + len(self.errors)

    def check(self) -> dict[K, T]:
        """Return all results.

        Raises: BrokerError: the first error.
        """
        for error in self.errors.values():
            raise error
        return self.succeeded

    def __repr__(self) -> str:
        return (
            f"<Results {len(self.succeeded)} succeeded, {len(self.errors)} failed: {', '.join(map(str, self.errors))}>"
        )
