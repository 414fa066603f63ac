"""`ConfigResource`: a resource with configs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any


class ConfigResourceType(IntEnum):
    """The types of resources."""

    BROKER = 4
    TOPIC = 2


class ConfigResource:
    """A topic or broker, and the configs to read or write; None: all."""

    def __init__(
        self, resource_type: ConfigResourceType | str, name: str | int, configs: Mapping[str, Any] | None = None
    ) -> None:
        if not isinstance(resource_type, ConfigResourceType):
            resource_type = ConfigResourceType[str(resource_type).upper()]
        self.resource_type = resource_type
        self.name = name
        self.configs = configs
