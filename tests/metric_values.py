"""Reads single values out of the metrics of a client, for tests."""

from __future__ import annotations

from collections.abc import Iterable

from aiokwire.metrics import Distribution, Metric, Sample


def value_of(samples: Iterable[Sample], metric: Metric | str, **labels: str) -> float:
    """Return the sum of a metric's samples, of a histogram the number of values.

    `labels` by the last part of their name: `name="t"` for `messaging.destination.name`. At least
    one sample must match.
    """
    wanted = metric if isinstance(metric, str) else metric.name
    found = [sample for sample in samples if sample.metric.name == wanted and _has(sample, labels)]
    assert found, f"no sample of {wanted} with {labels}"
    return sum(one.value.count if isinstance(one.value, Distribution) else one.value for one in found)


def _has(sample: Sample, labels: dict[str, str]) -> bool:
    return all(
        any(name.rpartition(".")[2] == wanted and given == value for name, given in sample.labels.items())
        for wanted, value in labels.items()
    )
