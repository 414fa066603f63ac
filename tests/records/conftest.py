"""Property tests here measure bytes, not time: a busy machine must not fail them."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("records", deadline=None)
settings.load_profile("records")
