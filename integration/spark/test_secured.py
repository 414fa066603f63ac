"""Spark on brokers with TLS and logins, on this machine; no trace of the jobs shows a password."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from integration.kafka.secure import SecureServer
from integration.spark.driver import Driver
from integration.spark.secured import Watch, check, check_traces, create_user, prepare

pytestmark = pytest.mark.timeout(900)


def test_jobs_log_in_and_leave_no_trace_of_a_password(secure_broker: SecureServer, tmp_path: Path) -> None:
    access = secure_broker.access
    user = asyncio.run(create_user(access))
    local = {"spark.master": "local[2]", "spark.local.dir": str(tmp_path / "local"), "spark.archives": ""}
    work = prepare(tmp_path, access, user, local)
    driver = Driver(tmp_path, "-m", "integration.spark.secured_job", str(work), python=sys.executable)
    try:
        with Watch([driver.process.pid]) as watch:
            check_traces(driver, tmp_path, user)
        found = driver.end()
    finally:
        driver.kill()
    check(found, access, user)
    watch.check(user)
