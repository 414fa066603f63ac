"""Warnings and settings of a pipeline on a cluster, which do not apply on one machine."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from aiokwire.errors import ConfigurationError
from aiokwire.spark.jobs.cluster import SHUFFLE, folder_notes, is_local, size_shuffles, waiting_note
from aiokwire.spark.pipelines import Progress, Stop
from aiokwire.spark.pipelines.frames import analysed

pytestmark = pytest.mark.timeout(120)


def test_a_local_master_is_distinguished_from_a_cluster() -> None:
    assert [is_local(each) for each in ("local", "local[2]", "local[*]")] == [True] * 3
    assert [is_local(each) for each in ("local-cluster[2,1,1024]", "spark://a:7077", "yarn")] == [False] * 3


def test_relative_folders_are_warned_about_on_a_cluster_without_a_shared_file_system() -> None:
    folders = ["checkpoints/totals", "/mnt/shared/checkpoints", "hdfs:///checkpoints", "file:///tmp/x"]
    (note,) = folder_notes(folders, "spark://a:7077", "file:///")
    assert note.startswith("'checkpoints/totals' is relative to the driver's working directory")
    assert not folder_notes(folders, "local[2]", "file:///")
    assert not folder_notes(folders, "spark://a:7077", "hdfs://namenode:8020")


def test_on_one_machine_there_is_no_wait_for_executors_and_shuffles_stay_as_they_are(spark: SparkSession) -> None:
    assert not waiting_note(spark)
    before = spark.conf.get(SHUFFLE)
    size_shuffles(spark, {}, Stop(), Progress("x", quiet=True))
    assert spark.conf.get(SHUFFLE) == before


def test_an_unknown_column_is_one_sentence_without_pysparks_json_line(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError, match=r"^step 'hourly': A column, .*nothere"), analysed("step 'hourly'"):
        spark.sql("select nothere from values (1) as t(id)")
    assert "SQLQueryContextLogger" not in capfd.readouterr().err
