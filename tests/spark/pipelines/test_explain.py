"""Drawings of pipelines: a tree, Mermaid and SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from aiokwire.spark.pipelines.declaration import Pipeline
from aiokwire.spark.pipelines.explain import as_mermaid, as_svg, as_text

PIPELINE = (
    Pipeline.read("flights", json="carrier string, at timestamp", watermark={"at": "2 hours"})
    .read("airlines", string=True, options={"startingOffsets": "latest"})
    .sql("select * from flights join airlines", name="named")
    .sql("select count(*) from named", name="totals")
    .write("totals", delivery="exactly-once", key="carrier & co")
    .write(parquet="lake/named", from_="named", partition_by=("carrier",))
    .write(console=True, mode="update", from_="FLIGHTS")
    .set(name="p", checkpoint="c")
)


def test_a_tree_under_each_sink() -> None:
    columns = {"totals": "n bigint", "flights": "carrier string"}
    assert as_text(PIPELINE, columns) == (
        "p: available-now, brokers 127.0.0.1:9092, checkpoint c\n"
        "\n"
        "sink totals\n"
        "│  topic totals\n"
        "│  exactly-once\n"
        "│  key carrier & co\n"
        "└─ step totals\n"
        "   │  columns: n bigint\n"
        "   └─ step named\n"
        "      ├─ source flights\n"
        "      │     topic flights\n"
        "      │     values: json\n"
        "      │     columns: carrier string\n"
        "      │     watermark at, 2 hours\n"
        "      └─ source airlines\n"
        "            topic airlines\n"
        "            values: string\n"
        "            startingOffsets = latest\n"
        "\n"
        "sink named\n"
        "│  parquet lake/named\n"
        "│  folders by carrier\n"
        "└─ step named (above)\n"
        "\n"
        "sink console\n"
        "│  the console\n"
        "│  mode update\n"
        "└─ source flights (above)"
    )


def test_mermaid() -> None:
    lines = as_mermaid(PIPELINE).splitlines()
    assert lines[0] == "flowchart LR"
    assert '    sink_totals(["totals<br/>topic totals<br/>exactly-once<br/>key carrier &amp; co"])' in lines
    assert [line.strip() for line in lines if "-->" in line] == [
        "source_flights --> step_named",
        "source_airlines --> step_named",
        "step_named --> step_totals",
        "step_totals --> sink_totals",
        "step_named --> sink_named",
        "source_flights --> sink_console",
    ]


def test_an_svg_has_a_box_for_each_part_and_no_two_overlap() -> None:
    root = ET.fromstring(as_svg(PIPELINE, {"totals": "n bigint, " * 20}))
    space = "{http://www.w3.org/2000/svg}"
    boxes = [[float(box.attrib[side]) for side in ("x", "y", "width", "height")] for box in root.iter(f"{space}rect")]
    assert len(boxes) == 7
    for number, (x, y, width, height) in enumerate(boxes):
        for left, top, wide, high in boxes[number + 1 :]:
            assert x + width <= left or left + wide <= x or y + height <= top or top + high <= y
    assert len(list(root.iter(f"{space}path"))) == 2 * 6
    text = "".join(root.itertext())
    assert "sink totals" in text
    assert "key carrier & co" in text
