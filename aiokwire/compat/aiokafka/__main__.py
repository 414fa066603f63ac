"""`python -m aiokwire.compat.aiokafka run program.py [ARGS]`, or `run -m module [ARGS]`."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from aiokwire.compat.aiokafka.replace import replace_aiokafka

USAGE = """usage: python -m aiokwire.compat.aiokafka run PROGRAM.py [ARGS...]
       python -m aiokwire.compat.aiokafka run -m MODULE [ARGS...]

Runs a program with aiokwire's clients in place of aiokafka's."""


def main(arguments: Sequence[str]) -> int:
    """Run a program; return 2 if the arguments name none."""
    match list(arguments):
        case ["run", "-m", str(module), *rest]:
            replace_aiokafka()
            sys.argv = [module, *rest]
            sys.path.insert(0, os.getcwd())
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["run", str(program), *rest] if not program.startswith("-"):
            replace_aiokafka()
            sys.argv = [program, *rest]
            sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
            runpy.run_path(program, run_name="__main__")
        case _:
            print(USAGE, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
