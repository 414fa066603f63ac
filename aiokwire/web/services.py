"""The clients and workers of an application: started in order, closed in reverse, with health.

Nothing here depends on a web framework: a framework's lifespan is a function that returns an
asynchronous context manager.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeAlias, TypeVar

from aiokwire.errors import ClosedError, ConfigurationError

T = TypeVar("T")
Service: TypeAlias = AbstractAsyncContextManager[Any]

logger: logging.Logger = logging.getLogger("aiokwire.web")

# The name under which the services are in the state of an application.
STATE: Final = "aiokwire"
# Seconds after which a client may retry: a full buffer has room again within moments.
RETRY_AFTER: Final = 1
# The body of that response.
TOO_MANY: Final = "too many records wait to be sent; try again later"


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceReport:
    """The health of one service."""

    is_ready: bool
    is_alive: bool = True
    """Whether it can become ready again without a restart of the process."""
    reasons: tuple[str, ...] = ()
    """Why it is not ready."""

    def as_dict(self) -> dict[str, Any]:
        """Return a value for JSON."""
        return {"ready": self.is_ready, "reasons": list(self.reasons)}


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """The health of an application."""

    phase: str
    """"new", "starting", "running", "stopping" or "stopped"."""
    services: Mapping[str, ServiceReport]

    @property
    def is_ready(self) -> bool:
        """Whether requests can be served: it runs, and every service is ready."""
        return self.phase == "running" and all(each.is_ready for each in self.services.values())

    @property
    def is_alive(self) -> bool:
        """Whether no service needs a restart of the process."""
        return all(each.is_alive for each in self.services.values())

    def liveness(self) -> dict[str, Any]:
        """Return whether no service needs a restart, and the names of those that do, for JSON."""
        failed = {name: list(each.reasons) for name, each in self.services.items() if not each.is_alive}
        return {"alive": self.is_alive, "failed": failed}

    def as_dict(self) -> dict[str, Any]:
        """Return a value for JSON."""
        services = {name: each.as_dict() for name, each in self.services.items()}
        return {"phase": self.phase, "ready": self.is_ready, "services": services}


class Services:
    """The clients and workers of one application, by name.

        services = Services(producer=Producer("localhost:9092"), worker=worker)
        app = FastAPI(lifespan=services.lifespan)

    They are started in the order of the arguments, each before the next, and closed in reverse:
    name a producer before the workers whose handlers use it.
    """

    def __init__(self, **services: Service | Callable[[], Service]) -> None:
        """Each is an asynchronous context manager, or a function that makes one; with functions the
        application can be started again, as tests do.

        Raises: ConfigurationError: another value.
        """
        for name, each in services.items():
            if not _is_service(each) and (isinstance(each, type) or not callable(each)):
                raise ConfigurationError(
                    f"{name} must be an asynchronous context manager (a producer, consumer or worker), or a function "
                    f"that makes one, not {each!r}"
                )
        self._given = services
        self._running: dict[str, Any] = {}
        self._phase = "new"

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[dict[str, Any]]:
        """Start the services, and close them at the end: `lifespan=` of an application.

        It yields the state of the application: this object by the name `aiokwire`. While a service
        closes, `/readyz` reports that the application is stopping.

        Raises: what a service raises when it starts, after closing those that were started.
        """
        self._phase = "starting"
        self._running = {}
        try:
            async with AsyncExitStack() as stack:
                for name, given in self._given.items():
                    made: Any = given if _is_service(given) else given()  # type: ignore[operator]  # checked
                    await stack.enter_async_context(made)
                    self._running[name] = made
                self._phase = "running"
                try:
                    yield {STATE: self}
                finally:
                    self._phase = "stopping"
        finally:
            self._phase = "stopped"

    def __getitem__(self, name: str) -> Any:
        """Return a started service.

        Raises: KeyError: there is none of this name; ClosedError: it was not started.
        """
        if name not in self._given:
            raise KeyError(f"no service has the name {name!r}; there are: {', '.join(self._given) or 'none'}")
        if name not in self._running:
            raise ClosedError(f"service {name!r} is not started: pass `services.lifespan` to the application")
        return self._running[name]

    def find(self, kind: type[T]) -> T:
        """Return the first service of a class.

        Raises: ClosedError: there is none, or it is not started.
        """
        for each in self._running.values():
            if isinstance(each, kind):
                return each
        raise ClosedError(f"no {kind.__name__} is started: pass one to Services, and its lifespan to the application")

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def report(self) -> Report:
        """Return the health of each service now. It costs no request."""
        found = {name: report_of(self._running.get(name), self._phase) for name in self._given}
        return Report(self._phase, found)


def _is_service(given: object) -> bool:
    return hasattr(type(given), "__aenter__") and hasattr(type(given), "__aexit__")


def report_of(service: object, phase: str) -> ServiceReport:
    """Return the health of a service, None if it is not started.

    A service has a method `health()`, as clients and workers have: it returns an object with `ok`,
    and if possible `reasons` (a list of strings) and `has_ended`. Without it, an attribute
    `failure` is an error or None. Any other service is ready once it is started.
    """
    if service is None:
        return ServiceReport(is_ready=False, reasons=("it is not started",))
    health = getattr(service, "health", None)
    if callable(health):
        return _report_of_health(health(), phase)
    failure = getattr(service, "failure", None)
    if isinstance(failure, BaseException):
        return ServiceReport(is_ready=False, is_alive=False, reasons=(f"it has failed: {failure}",))
    return ServiceReport(is_ready=True)


def _report_of_health(found: Any, phase: str) -> ServiceReport:
    if found.ok:
        return ServiceReport(is_ready=True)
    has_ended = bool(getattr(found, "has_ended", False))  # expected while the application stops
    reasons = tuple(getattr(found, "reasons", ())) or (str(found),)
    return ServiceReport(is_ready=False, is_alive=phase != "running" or not has_ended, reasons=reasons)
