"""`python -m tests.metrics_page` writes docs/metrics.md; part of `make generate`."""

from __future__ import annotations

from aiokwire.cluster import metrics as cluster
from aiokwire.consumer import metrics as consumer
from aiokwire.group import metrics as group
from aiokwire.metrics import DURATION, Metric
from aiokwire.net import metrics as net
from aiokwire.producer import metrics as producer

ALL: tuple[Metric, ...] = (
    DURATION,
    *producer.METRICS,
    *consumer.METRICS,
    *group.METRICS,
    *cluster.METRICS,
    *net.METRICS,
)
