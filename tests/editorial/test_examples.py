"""The example files, as `make run` and the acceptance import them, for Facebook Pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from publisher.adapters.facebook_pages import FacebookPages
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.editorial import channels
from publisher.editorial.media import Library, storage
from publisher.engine.registry import Registry
from tests.editorial.conftest import Importing, Wax

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def pages(app_database: Database) -> Registry:
    """Page A and Page B, of Facebook's kind."""
    store = Library(app_database.engine, storage(Settings()))
    registry = Registry([FacebookPages(cast("Any", None), lambda _: "t", store)])
    with app_database.engine.begin() as conn:
        for name, remote_id in (("Page A", "101"), ("Page B", "102")):
            channels.add(
                conn,
                Wax(),
                registry,
                platform="facebook_pages",
                name=name,
                remote_id=remote_id,
                base_url="http://127.0.0.1:8801",
                token="t",
            )
    return registry


@pytest.fixture
def registry() -> Registry:
    return Registry([])


def test_the_good_file_is_a_dozen_posts(importing: Importing, pages: Registry) -> None:
    importing.registry = pages
    path = EXAMPLES / "approved-posts.csv"
    report = importing.path(path, now=None)
    assert [(row.ref, row.faults) for row in report.rows if row.status != "added"] == []
    assert (report.added, report.exit_code) == (12, 0)
    texts = importing.texts()
    assert any("می\u200cشود" in text for text in texts)
    assert any("\u200d👩\u200d" in text for text in texts)
    assert any("か\u3099" in text and "が" in text for text in texts)
    assert any(text.startswith("=") for text in texts)
    assert any("\n\n  (This line" in text for text in texts)
    assert max(map(len, texts)) > 2000
    again = importing.path(path, now=None)
    assert (again.unchanged, again.added, again.exit_code) == (12, 0, 0)


def test_the_bad_file_stores_nothing(importing: Importing, pages: Registry) -> None:
    importing.registry = pages
    report = importing.path(EXAMPLES / "bad-posts.csv", now=None)
    assert report.exit_code == 2
    assert (report.added, report.skipped) == (0, 1)
    assert importing.is_empty()
    bad = [row for row in report.rows if row.status == "bad"]
    assert len(bad) >= 10
    for row in bad:
        assert row.column, row
        assert row.message, row
        assert row.fix, row
    codes = [row.faults[0].code for row in bad]
    assert len({*codes}) >= 15
