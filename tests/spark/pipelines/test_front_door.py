"""The public names of `aiokwire.spark.pipelines`, whatever the order in which its modules load."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
import types

from aiokwire.spark import pipelines


def test_every_public_name_is_its_object_also_when_all_modules_are_loaded() -> None:
    for module in pkgutil.walk_packages(pipelines.__path__, f"{pipelines.__name__}."):
        importlib.import_module(module.name)
    for name in dir(pipelines):
        assert not isinstance(getattr(pipelines, name), types.ModuleType), name


def test_importing_it_loads_neither_spark_nor_arrow() -> None:
    script = "import sys, aiokwire.spark.pipelines; assert not {'pyspark', 'pyarrow', 'rich'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
