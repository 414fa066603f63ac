"""CRC-32C for the kernel and the broker's log, from the extension module of the `crc32c` package.

The package's own `__init__` imports `importlib.metadata` and a command line parser, which are not
used here and would take a quarter of the time of importing a client.
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
            return sys.modules.setdefault(_EXTENSION, module)  # where the package finds it, if it is imported
    return importlib.import_module("crc32c")  # a zip file, a frozen program


crc32c: Callable[..., int] = (sys.modules.get(_EXTENSION) or _load()).crc32c
