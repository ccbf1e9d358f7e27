"""A patient per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from publisher.config import Settings
from tests.doctor.patient import Patient
from tests.engine.ground import Ground
from tests.postgres import Postgres


@pytest.fixture
def patient(pg: Postgres, tmp_path: Path) -> Iterator[Patient]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with Ground.open(pg) as ground:
        settings = Settings(home=home, database_url=SecretStr(pg.url(ground.name)))
        yield Patient(ground, settings)
