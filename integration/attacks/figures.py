"""What an attack costs: processor time, memory, and the time that others wait; each with a bar."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
MIB = 1 << 20


class Figure(NamedTuple):
    """One measured figure; `bar` is the most that it may be."""

    what: str
    value: float
    bar: float
    unit: str = ""

    @property
    def is_held(self) -> bool:
        return self.value <= self.bar

    @property
    def text(self) -> str:
        return f"{self.what} {_number(self.value)}{self.unit}"

    @property
    def bar_text(self) -> str:
        return f"{_number(self.bar)}{self.unit}"


def faults(what: str, count: int) -> Figure:
    """Return a figure that counts what must not happen."""
    return Figure(what, count, 0)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


class Meter:
    """Processor time and memory of a process from now on."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins again
        self._cpu = cpu_seconds(pid)
        self._resident = _memory(pid, "VmRSS")
        self._virtual = _memory(pid, "VmSize")

    def cpu(self, bar: float) -> Figure:
        """Return the seconds of processor time since then."""
        return Figure("CPU", cpu_seconds(self._pid) - self._cpu, bar, " s")

    def peak(self, bar: float) -> Figure:
        """Return by how many MiB the resident memory grew at its peak."""
        return Figure("peak", _memory(self._pid, "VmHWM") - self._resident, bar, " MiB")

    def virtual(self, bar: float) -> Figure:
        """Return by how many MiB the virtual memory has grown."""
        return Figure("virtual", _memory(self._pid, "VmSize") - self._virtual, bar, " MiB")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
