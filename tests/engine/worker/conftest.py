"""A crew for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.crew import Crew
from tests.engine.ground import Ground, Lane


@pytest.fixture
def crew(ground: Ground, lane: Lane, tmp_path: Path) -> Crew:
    """Workers with a channel, a queue and a spool folder of this test's own."""
    # The database is a copy of one in which no worker has said a word for a while.
    ground.sql("UPDATE pulse SET beat_at = clock_timestamp(), rescue_not_before = beat_at")
    return Crew(ground, lane, tmp_path / "spool")
