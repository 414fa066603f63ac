"""docs/grafana-dashboard.json and docs/metrics.md: every name in them exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests import metrics_page

DOCS = Path(__file__).parents[2] / "docs"
SELECTED = re.compile(r"\{([^}]*)\}")
GROUPED = re.compile(r"by \(([^)]*)\)")
METRIC = re.compile(r"\b(?:kafka|messaging)_\w+")


def expressions() -> Iterator[str]:
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text())
    for variable in dashboard["templating"]["list"]:
        yield variable["query"]
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
            yield from re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])


def test_the_page_of_metrics_is_current() -> None:
    assert (DOCS / "metrics.md").read_text() == metrics_page.page(), "run: make generate"


def test_every_expression_of_the_dashboard_names_metrics_and_labels_that_exist() -> None:
    found = list(expressions())
    assert len(found) > 30
    known, labels = metrics_page.series(), metrics_page.labels()
    for expression in found:
        used = {name.strip() for group in GROUPED.findall(expression) for name in group.split(",")}
        for selection in SELECTED.findall(expression):
            used |= {re.split(r"[=!]", part.strip())[0] for part in selection.split(",") if part.strip()}
        assert used <= labels, expression
        bare = SELECTED.sub("", GROUPED.sub("", expression))
        assert set(METRIC.findall(bare)) <= known | labels, expression


def test_every_panel_has_its_own_id_and_place() -> None:
    panels = json.loads((DOCS / "grafana-dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
