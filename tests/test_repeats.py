"""A lasting error is logged on change, and every 30 seconds."""

from __future__ import annotations

import logging

import pytest

from aiokwire import repeats
from aiokwire.repeats import unrepeated_logger


@pytest.fixture
def logger() -> logging.Logger:
    logger = unrepeated_logger("aiokwire.test_repeats")
    for each in logger.filters[:-1]:
        logger.removeFilter(each)
    return logger


async def test_an_error_is_logged_on_change_and_for_each_subject(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    for group, cause in [("g", "full"), ("g", "full"), ("h", "full"), ("g", "broken"), ("g", "broken"), ("g", "full")]:
        logger.error("group %r: %s", group, cause)
    assert caplog.messages == ["group 'g': full", "group 'h': full", "group 'g': broken", "group 'g': full"]


async def test_a_lasting_error_is_logged_again_after_a_pause(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pause in (30.0, 0.0):
        monkeypatch.setattr(repeats, "PAUSE", pause)
        for _ in range(2):
            logger.error("group %r: %s", "g", "full")
    assert len(caplog.messages) == 3


async def test_warnings_and_errors_with_a_traceback_are_always_logged(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        logger.warning("group %r: %s", "g", "full")
        logger.error("group %r: %s", "g", "full", exc_info=ValueError("full"))
    assert len(caplog.messages) == 4
