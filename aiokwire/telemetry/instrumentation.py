"""The instrumentor: traces every client of a program, which needs no changes.

The command `opentelemetry-instrument` finds it by its entry point. Needs the package
`opentelemetry-instrumentation`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any, Final

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]

from aiokwire.consumer import Consumer
from aiokwire.hooks import Hooks, combined_hooks
from aiokwire.producer import Producer
from aiokwire.telemetry.tracing import Tracing
from aiokwire.worker import Worker

# The classes with an argument `hooks`.
TRACED: Final[tuple[type[Any], ...]] = (Producer, Consumer, Worker)


class AiokwireInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Adds `Tracing` to the hooks of every producer, consumer and worker created from now on.

    `instrument(tracer_provider=..., propagator=..., parent=...)` takes the arguments of `Tracing`.
    """

    _originals: dict[type[Any], Callable[..., None]]

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the package that is instrumented, with its versions."""
        return ("aiokwire >= 0.1",)

    def _instrument(self, **options: Any) -> None:
        tracing = Tracing(**options)
        self._originals = {}
        for kind in TRACED:
            self._originals[kind] = kind.__init__
            kind.__init__ = _with_tracing(kind.__init__, tracing)

    def _uninstrument(self, **options: Any) -> None:
        """Existing clients keep their hooks."""
        for kind, original in self._originals.items():
            kind.__init__ = original


def _with_tracing(original: Callable[..., None], tracing: Tracing) -> Callable[..., None]:
    @functools.wraps(original)
    def construct(self: Any, *args: Any, hooks: Hooks | None = None, **options: Any) -> None:
        original(self, *args, hooks=traced_hooks(hooks, tracing), **options)

    return construct


def traced_hooks(hooks: Hooks | None, tracing: Tracing) -> Hooks:
    """Return hooks with tracing added if they lack it."""
    if hooks is None:
        return tracing
    parts = getattr(hooks, "hooks", (hooks,))
    return hooks if any(isinstance(part, Tracing) for part in parts) else combined_hooks(hooks, tracing)
