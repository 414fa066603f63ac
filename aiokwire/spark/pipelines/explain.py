"""A pipeline as a drawing: a tree for the terminal, Mermaid for a page, SVG for a browser. No I/O.

Used by the command's `--explain`. `Schemas` has the columns of sources and steps from Spark.
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from aiokwire.config import is_secret_option
from aiokwire.security import HIDDEN
from aiokwire.spark.pipelines.declaration import DEFAULT_BOOTSTRAP, Pipeline, Sink, Source, Step
from aiokwire.spark.pipelines.graph import find, inputs

Schemas: TypeAlias = Mapping[str, str]

# Sizes in the SVG's units; a character's width is that of a 12 px monospaced font.
_SIGN: Final = 7.25
_LINE: Final = 17
_PAD: Final = 10
_GAP: Final = 70
_WIDEST: Final = 46
_COLOURS: Final = {"source": "#dbeafe", "step": "#fef3c7", "sink": "#dcfce7"}


@dataclasses.dataclass(frozen=True)
class Node:
    """A source, step or sink."""

    kind: str
    name: str
    facts: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    """Names of sources and steps."""


def nodes(pipeline: Pipeline, schemas: Schemas | None = None) -> list[Node]:
    """Return all sources, steps and sinks, in the order of the rows."""
    schemas = schemas or {}
    found = [Node("source", each.name, tuple(_of_source(each, schemas))) for each in pipeline.sources]
    for step in pipeline.steps:
        facts = [*_columns(step.name, schemas), *_watermark(step)]
        found.append(Node("step", step.name, tuple(facts), tuple(inputs(step, pipeline))))
    known = [node.name for node in found]
    sinks = [
        Node("sink", sink.name, tuple(_of_sink(sink)), (find(sink.from_, known) or sink.from_,))
        for sink in pipeline.sinks
    ]
    return found + sinks


def _of_source(source: Source, schemas: Schemas) -> Iterator[str]:
    if source.topic is not None:
        yield f"topic {source.topic}"
    chosen = [kind for kind in ("json", "avro") if getattr(source, kind) is not None]
    yield f"values: {(chosen or ['string' if source.string else 'bytes'])[0]}"
    yield from _columns(source.name, schemas)
    yield from _watermark(source)
    yield from _options(source.options)


def _of_sink(sink: Sink) -> Iterator[str]:
    yield sink.target
    if sink.kind == "topic":
        yield sink.delivery
        if sink.key is not None:
            yield f"key {sink.key}"
    if sink.partition_by:
        yield f"folders by {', '.join(sink.partition_by)}"
    if sink.mode != "append":
        yield f"mode {sink.mode}"
    yield from _options(sink.options)


def _options(options: Mapping[str, str]) -> Iterator[str]:
    yield from (f"{name} = {HIDDEN if is_secret_option(name) else text}" for name, text in options.items())


def _columns(name: str, schemas: Schemas) -> Iterator[str]:
    if name in schemas:
        yield f"columns: {schemas[name]}"


def _watermark(value: Source | Step) -> Iterator[str]:
    if value.watermark is not None:
        yield f"watermark {value.watermark.column}, {value.watermark.delay}"


def heading(pipeline: Pipeline) -> str:
    """Return name, brokers, trigger and checkpoint."""
    bootstrap = pipeline.bootstrap or DEFAULT_BOOTSTRAP
    return f"{pipeline.name}: {pipeline.trigger.text}, brokers {bootstrap}, checkpoint {pipeline.checkpoint}"


# --- the terminal -----------------------------------------------------------------------------------------------------


def as_text(pipeline: Pipeline, schemas: Schemas | None = None) -> str:
    """Draw a tree of inputs under each sink; repeated nodes are only named."""
    by_name = {node.name: node for node in nodes(pipeline, schemas) if node.kind != "sink"}
    drawn: set[str] = set()
    lines = [heading(pipeline)]
    for node in nodes(pipeline, schemas):
        if node.kind == "sink":
            lines += ["", *_branch(node, by_name, drawn, "", "")]
    return "\n".join(lines)


def _branch(node: Node, by_name: Mapping[str, Node], drawn: set[str], first: str, rest: str) -> Iterator[str]:
    again = node.name in drawn and node.kind != "sink"
    yield f"{first}{node.kind} {node.name}{' (above)' if again else ''}"
    if again:
        return
    if node.kind != "sink":
        drawn.add(node.name)
    bar = "│  " if node.inputs else "   "
    for fact in node.facts:
        yield f"{rest}{bar}{fact}"
    for number, name in enumerate(node.inputs):
        is_last = number == len(node.inputs) - 1
        yield from _branch(
            by_name[name], by_name, drawn, rest + ("└─ " if is_last else "├─ "), rest + ("   " if is_last else "│  ")
        )


# --- Mermaid ----------------------------------------------------------------------------------------------------------


def as_mermaid(pipeline: Pipeline, schemas: Schemas | None = None) -> str:
    """Draw a flowchart."""
    brackets = {"source": ("[(", ")]"), "step": ("[", "]"), "sink": ("([", "])")}
    lines = ["flowchart LR"]
    for node in nodes(pipeline, schemas):
        left, right = brackets[node.kind]
        label = "<br/>".join(html.escape(text) for text in (node.name, *node.facts))
        lines.append(f'    {_identity(node.kind, node.name)}{left}"{label}"{right}')
    kinds = {node.name: node.kind for node in nodes(pipeline) if node.kind != "sink"}
    arrows = [
        f"    {_identity(kinds[name], name)} --> {_identity(node.kind, node.name)}"
        for node in nodes(pipeline)
        for name in node.inputs
    ]
    return "\n".join([*lines, *arrows])


def _identity(kind: str, name: str) -> str:
    return f"{kind}_{''.join(sign if sign.isalnum() else '_' for sign in name)}"


# --- SVG --------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Box:
    node: Node
    lines: tuple[str, ...]
    x: float
    y: float
    width: float

    @property
    def height(self) -> float:
        return len(self.lines) * _LINE + 2 * _PAD


def as_svg(pipeline: Pipeline, schemas: Schemas | None = None) -> str:
    """Draw boxes from left to right, placed by the longest path to each."""
    boxes = _boxes(nodes(pipeline, schemas))
    makers = {box.node.name: box for box in boxes if box.node.kind != "sink"}
    width = max(box.x + box.width for box in boxes) + _GAP / 2
    height = max(box.y + box.height for box in boxes) + _GAP / 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="monospace" font-size="12">',
        f'<text x="{_GAP / 2}" y="20">{html.escape(heading(pipeline))}</text>',
    ]
    for box in boxes:
        lines += [_arrow(makers[name], box) for name in box.node.inputs]
    for box in boxes:
        lines += _drawn(box)
    return "\n".join([*lines, "</svg>"])


def _boxes(found: Sequence[Node]) -> list[_Box]:
    makers = {node.name: node for node in found if node.kind != "sink"}

    def depth(node: Node) -> int:
        return 1 + max((depth(makers[name]) for name in node.inputs), default=-1)

    columns: dict[int, list[Node]] = {}
    last = max(depth(node) for node in found)
    for node in found:
        columns.setdefault(last if node.kind == "sink" else depth(node), []).append(node)
    boxes = []
    x = _GAP / 2
    for _, column in sorted(columns.items()):
        texts = {node.name: tuple(_wrapped([f"{node.kind} {node.name}", *node.facts])) for node in column}
        width = max(len(line) for lines in texts.values() for line in lines) * _SIGN + 2 * _PAD
        y = _GAP / 2 + _PAD
        for node in column:
            boxes.append(_Box(node, texts[node.name], x, y, width))
            y += boxes[-1].height + _GAP / 3
        x += width + _GAP
    return boxes


def _wrapped(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        line = ""
        for word in text.split(" "):
            if line and len(line) + len(word) >= _WIDEST:
                yield line
                line = f"  {word}"
            else:
                line = f"{line} {word}" if line else word
        yield line


def _arrow(start: _Box, end: _Box) -> str:
    x1, y1 = start.x + start.width, start.y + start.height / 2
    x2, y2 = end.x, end.y + end.height / 2
    bend = (x2 - x1) / 2
    return (
        f'<path d="M{x1:.0f},{y1:.0f} C{x1 + bend:.0f},{y1:.0f} {x2 - bend:.0f},{y2:.0f} {x2 - 6:.0f},{y2:.0f}" '
        f'fill="none" stroke="#475569"/><path d="M{x2 - 8:.0f},{y2 - 4:.0f} L{x2:.0f},{y2:.0f} '
        f'L{x2 - 8:.0f},{y2 + 4:.0f} z" fill="#475569"/>'
    )


def _drawn(box: _Box) -> Iterator[str]:
    yield (
        f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="6" '
        f'fill="{_COLOURS[box.node.kind]}" stroke="#475569"/>'
    )
    for number, line in enumerate(box.lines):
        weight = ' font-weight="bold"' if number == 0 else ""
        y = box.y + _PAD + (number + 0.8) * _LINE
        yield f'<text x="{box.x + _PAD:.0f}" y="{y:.0f}"{weight} xml:space="preserve">{html.escape(line)}</text>'
