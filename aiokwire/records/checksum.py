"""CRC-32C, by the `crc32c` package's extension module alone; the kernel and the broker's log take it from here.

The package's own `__init__` reads its version through `importlib.metadata` and loads a command line's parser: with all
that those import, a quarter of the time that a client takes to import, for nothing that is used.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from types import ModuleType

_EXTENSION = "crc32c._crc32c"


def _load() -> ModuleType:
    package = importlib.util.find_spec("crc32c")
    for place in (package and package.submodule_search_locations) or ():
        spec = FileFinder(place, (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec(_EXTENSION)
        if spec is not None and spec.loader is not None:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return sys.modules.setdefault(_EXTENSION, module)  # the package takes it from there, if anyone imports it
    return importlib.import_module("crc32c")  # packed in another way: a zip file, a frozen program


crc32c: Callable[..., int] = (sys.modules.get(_EXTENSION) or _load()).crc32c
