"""Periodic handlers: functions that a worker calls at intervals, and what they receive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, get_args

from aiokwire.config import require_number
from aiokwire.errors import ConfigurationError
from aiokwire.types import TopicPartition
from aiokwire.worker.context import Sender
from aiokwire.worker.handlers import checked_name, checked_timeout
from aiokwire.worker.signatures import hints_of, open_parameters, refuse

if TYPE_CHECKING:
    import inspect
    from collections.abc import Awaitable, Collection

    from aiokwire.worker.context import Outlet
    from aiokwire.worker.handlers import HandlerFunction

RunsOn: TypeAlias = Literal["each", "assigned", "one"]
_RUNS_ON: Final = get_args(RunsOn)
# Bounds of a period, in seconds.
SHORTEST: Final = 0.001
LONGEST: Final = 366 * 86_400


class PeriodicOptions(TypedDict, total=False):
    """The keyword arguments of `PeriodicHandler`."""

    name: str | None
    jitter: float
    timeout: float | None
    runs_on: RunsOn


class PeriodicContext(Sender):
    """One run of a periodic handler, which has it as an argument annotated `PeriodicContext`.

    handler: the handler's name.
    number: 1 for the first run of this worker, 2 for the second, ...
    assignment: the worker's partitions when the run started.
    """

    __slots__ = ("assignment", "number")

    def __init__(self, handler: str, number: int, assignment: Collection[TopicPartition], outlet: Outlet) -> None:
        super().__init__(handler, outlet)
        self.number: int = number
        self.assignment: frozenset[TopicPartition] = frozenset(assignment)

    def __repr__(self) -> str:
        return f"<PeriodicContext of {self.handler}, run {self.number}>"


class PeriodicHandler:
    """A function that a worker calls at intervals.

    Args:
        function: a coroutine function with no argument, or one annotated `PeriodicContext`.
        period: seconds between the starts of two runs.
        name: for logs and metrics; default: the function's qualified name.
        jitter: the longest delay of a start as a share of the period, from 0 to 1; drawn for each
            start.
        timeout: seconds for one run; None: the worker's `handler_timeout_ms`.
        runs_on: "each" worker of a group, those that are "assigned" partitions, or the "one" that
            is assigned partition 0 of the first topic with a handler, in alphabetical order.

    Raises: ConfigurationError: the function is not a coroutine function, or its arguments cannot be
    filled; an option is out of its range.
    """

    __slots__ = ("_function", "_named", "_positional", "jitter", "name", "period", "runs_on", "timeout")

    def __init__(
        self,
        function: HandlerFunction,
        period: float,
        *,
        name: str | None = None,
        jitter: float = 0.1,
        timeout: float | None = None,
        runs_on: RunsOn = "each",
    ) -> None:
        self.name: str = checked_name(function, name)
        self.period: float = self._checked("the period", period, minimum=SHORTEST, maximum=LONGEST)
        self.jitter: float = self._checked("jitter", jitter, minimum=0, maximum=1)
        self.timeout: float | None = checked_timeout(self.name, timeout)
        if runs_on not in _RUNS_ON:
            raise ConfigurationError(
                f"handler {self.name}: runs_on must be one of {', '.join(_RUNS_ON)}, not {runs_on!r}"
            )
        self.runs_on = runs_on
        self._function = function
        self._positional, self._named = _contexts_of(function, self.name)

    def _checked(self, option: str, given: float, *, minimum: float, maximum: float) -> float:
        require_number(f"handler {self.name}: {option}", given, minimum=minimum, maximum=maximum)
        return given

    def __call__(self, context: PeriodicContext) -> Awaitable[object]:
        """Call the function; await the result."""
        return self._function(*[context] * self._positional, **dict.fromkeys(self._named, context))

    def __repr__(self) -> str:
        return f"<PeriodicHandler {self.name}, every {self.period:g} s>"


def _contexts_of(function: HandlerFunction, name: str) -> tuple[int, list[str]]:
    """Return the number of positional arguments for the context, and the others' names."""
    hints = hints_of(function, name)
    parameters = [one for one in open_parameters(function, name) if _is_filled(one, hints, name)]
    named = [one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY]
    return len(parameters) - len(named), named


def _is_filled(parameter: inspect.Parameter, hints: dict[str, Any], name: str) -> bool:
    is_context = hints.get(parameter.name) is PeriodicContext
    if not is_context and parameter.default is parameter.empty:
        refuse(name, parameter.name, "cannot be filled: a periodic handler has no record; annotate PeriodicContext, "
               "or bind the argument by functools.partial")  # fmt: skip
    return is_context
