"""Puts this package in place of the module `aiokafka`, so that programs run unchanged."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Final

NAME: Final = "aiokafka"
PACKAGE: Final = "aiokwire.compat.aiokafka"


def replace_aiokafka() -> None:
    """Have `import aiokafka`, and imports of its modules, return this package's.

    Call it before the first import; a second call has no effect.

    Raises: ImportError: the original was imported before.
    """
    imported = sys.modules.get(NAME)
    if imported is not None and imported.__name__ != PACKAGE:
        raise ImportError("aiokafka was imported before it could be replaced: call replace_aiokafka() first")
    if not any(isinstance(finder, AiokafkaFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, AiokafkaFinder())


class AiokafkaFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `aiokafka.x` as `aiokwire.compat.aiokafka.x`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of aiokafka; None for others."""
        if fullname != NAME and not fullname.startswith(f"{NAME}."):
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return this package's module.

        Raises: ModuleNotFoundError: it has none; aiokafka's internals have no equivalent.
        """
        own = PACKAGE + spec.name[len(NAME) :]
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name != own:
                raise
            raise ModuleNotFoundError(
                f"{spec.name} is internal to aiokafka and has no equivalent in {PACKAGE}", name=spec.name
            ) from None
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec, which the import system has replaced: it was executed
        before."""
        assert module.__spec__ is not None
        module.__spec__ = self._specs.pop(module.__spec__.name)

    def __init__(self) -> None:
        self._specs: dict[str, importlib.machinery.ModuleSpec | None] = {}
