"""`aiokwire spark audit TOPIC...`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aiokwire.cli.connection import bootstrap_option, source_connection
from aiokwire.cli.output import print_report
from aiokwire.cli.running import FAILED
from aiokwire.cli.spark.options import source_options, spark_options
from aiokwire.cli.spark.running import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aiokwire.spark.pipelines import AuditReport, Progress, Stop


def _names(_ctx: click.Context, _param: click.Parameter, given: str) -> tuple[str, ...]:
    return tuple(name for name in given.replace(" ", "").split(",") if name)


@click.command("audit")
@click.argument("topics", nargs=-1, required=True)
@bootstrap_option
@source_options
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a report with plots to this file.")
@click.option(
    "--duplicates",
    default="key,value",
    show_default=True,
    metavar="WHAT",
    help="The identity of a record: key,value, key, value, header:NAME; none turns the check off, which is faster.",
)
@click.option("--group", "groups", multiple=True, help="Report the lag of this group; repeatable. [default: all]")
@click.option(
    "--against",
    metavar="PATH",
    help="Compare with the archive at this path, offset by offset.",
)
@click.option(
    "--fail-on",
    default="gaps,differences",
    show_default=True,
    callback=_names,
    metavar="FINDINGS",
    help="Findings that set the exit status to 1: gaps, deleted, differences, duplicates, disorder, skew, aborted, "
    "open, lag, old-formats.",
)
@click.option(
    "--skew-limit",
    type=float,
    default=2.0,
    show_default=True,
    help="Report partitions with more than this multiple of the mean bytes as skewed.",
)
@click.option("--max-lag", type=int, help="Report groups whose lag exceeds this number of offsets.")
@spark_options
def command(
    *,
    topics: tuple[str, ...],
    bootstrap: str,
    options: dict[str, str],
    html: Path | None,
    duplicates: str,
    groups: tuple[str, ...],
    against: str | None,
    fail_on: tuple[str, ...],
    skew_limit: float,
    max_lag: int | None,
    master: str | None,
    conf: dict[str, str],
    as_json: bool,
) -> None:
    """Look for gaps, duplicates, disorder and skew in TOPICS.

    Gaps are classified: control records, records of aborted transactions, compacted records,
    missing records. The exit status is 1 if a finding named by --fail-on occurs.
    """

    given = {**source_connection(), **options}

    def work(spark: SparkSession, stop: Stop, progress: Progress) -> None:
        from aiokwire.spark.pipelines import audit

        report = audit(
            topics,
            bootstrap=bootstrap,
            options=given,
            duplicates=None if duplicates == "none" else duplicates,
            groups=groups or None,
            against=against,
            fail_on=fail_on,
            skew_limit=skew_limit,
            max_lag=max_lag,
            spark=spark,
            progress=progress,
            stop=stop,
        )
        progress.close()
        _show(report, html, as_json)
        if report.failed:
            raise SystemExit(FAILED)

    run(work, title="audit", master=master, conf=conf, as_json=as_json)


def _show(report: AuditReport, html: Path | None, as_json: bool) -> None:
    from aiokwire.spark.pipelines import audit_as_html, audit_as_json, audit_tables, audit_verdict

    if html is not None:
        # Written atomically: a report may be served from this path.
        unfinished = html.with_name(f"{html.name}.part")
        unfinished.write_text(audit_as_html(report), encoding="utf-8")
        os.replace(unfinished, html)
    if as_json:
        print(json.dumps(audit_as_json(report), ensure_ascii=False))
        return
    for title, heads, rows in audit_tables(report):
        print_report(title, heads, rows)
    print(audit_verdict(report))
    if html is not None:
        print(f"report: {html}")
