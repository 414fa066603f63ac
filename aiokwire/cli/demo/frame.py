"""Shared by both demos: options, loading the flights, the check, and two plots side by side."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from aiokwire.threads import run_in_thread

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")
CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def demo_options(output: str, *, holds: str, kill: str) -> Callable[[CommandT], CommandT]:
    """Add `--output` and `--kill` with these help texts: the parameters `output` and `kill`."""

    def add(function: CommandT) -> CommandT:
        function = click.option("--kill/--no-kill", default=True, show_default=True, help=kill)(function)
        folder = click.Path(file_okay=False, path_type=Path)
        return click.option("--output", type=folder, default=Path(output), show_default=True, help=holds)(function)

    return add


async def prepare(console: Console, load: Callable[[threading.Event], T], folder: Path) -> T:
    """Load the flights and create `folder` empty; if cancelled, `load` ends early by its event."""
    with console.status("reading 336,776 flights"):
        loaded = await _load(load)
        await run_in_thread(_make_empty, folder)
    return loaded


async def _load(load: Callable[[threading.Event], T]) -> T:
    stopped = threading.Event()
    try:
        return await run_in_thread(load, stopped)
    finally:
        stopped.set()


def _make_empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


class Finding(NamedTuple):
    """A line of a check."""

    name: str
    held: bool
    detail: str = ""


def print_check(heading: str, findings: Sequence[Finding], *notes: str) -> bool:
    """Print a check line by line; return whether all of it passed."""
    print(f"{heading}:")
    for name, held, detail in findings:
        print(f"  {'ok  ' if held else 'FAIL'} {name}{f' ({detail})' if detail else ''}")
    for note in notes:
        print(f"  {note}")
    good = all(found.held for found in findings)
    print("check passed" if good else "check FAILED")
    return good


@contextmanager
def two_plots(path: Path, size: tuple[float, float]) -> Iterator[tuple[Any, Any]]:
    """Yield axes on the left and on the right; write the plot to `path` when the block ends."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=size, layout="constrained")
    yield left, right
    figure.savefig(path, dpi=110)
    plt.close(figure)


def plot_counts(
    axes: Any, samples: Sequence[tuple[float, int, int]], names: tuple[str, str], *, title: str, unit: str
) -> None:
    """Plot two counts over time as steps."""
    seconds = [at for at, _, _ in samples]
    for index, name in enumerate(names, 1):
        axes.step(seconds, [sample[index] for sample in samples], where="post", label=name)
    axes.set(xlabel="seconds", ylabel=unit, title=title)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylim(bottom=0)


def shade(axes: Any, since: float, until: float, name: str) -> None:
    """Shade an outage."""
    axes.axvspan(since, until, color="tab:red", alpha=0.2, label=name)
