"""Options of an admin client."""

from __future__ import annotations

import dataclasses

from aiokwire.cluster import ClientConfig
from aiokwire.config import documents_options


@documents_options()
@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class AdminConfig(ClientConfig):
    """Every option of an admin client: those of `ClientConfig`."""

    enable_metrics_push: bool = False
    """Whether metrics are pushed to a broker that requests them (KIP-714; extra `telemetry`). As in Java's client, the
    default differs from that of producers and consumers: most admin clients live for seconds."""
