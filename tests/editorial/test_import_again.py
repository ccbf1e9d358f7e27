"""The same ref again: in one file, later, at the same time, and after a crash."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from publisher.editorial.imports import Report, importer
from publisher.engine import ledger
from publisher.engine.job import public_id
from tests.editorial.conftest import Importing

EXAMPLES = Path(__file__).parents[2] / "examples"
Faults = Callable[[Report], list[tuple[int, str, str]]]
USUAL = {
    "ref": "a",
    "text": "One text, long enough to be cut when it is shown",
    "publish_at": "2026-12-07 09:00",
    "zone": "Asia/Ho_Chi_Minh",
    "link": "https://example.com/1",
    "media": "dawn.png|noon.png",
    "alt": "dawn|noon",
}


@pytest.fixture(autouse=True)
def pictures(importing: Importing) -> None:
    for name in ("dawn.png", "noon.png", "dusk.png"):
        (importing.folder / name).write_bytes((EXAMPLES / "media" / name).read_bytes())


def test_the_same_content_adds_nothing_and_says_so(importing: Importing) -> None:
    (added,) = importing.rows(USUAL).rows
    same = USUAL | {"publish_at": "2026-12-07 02:00Z", "zone": "", "channel": "1"}
    for row in (USUAL, same, USUAL | {"publish_at": "now"}):
        report = importing.rows(row)
        assert (report.unchanged, report.exit_code) == (1, 0)
        assert report.rows[0].job_id == added.job_id
        assert added.job_id is not None
        note = f"Imported before; job {public_id(added.job_id)} is scheduled."
        assert report.rows[0].message == note
    assert len(importing.all("SELECT 1 FROM jobs")) == 1


def test_now_again_is_the_same_time(importing: Importing) -> None:
    importing.rows({}, now=None)
    assert importing.rows({}, now=None).unchanged == 1


def test_a_renamed_file_with_the_same_bytes_is_the_same(importing: Importing) -> None:
    importing.rows(USUAL)
    (importing.folder / "dawn.png").rename(importing.folder / "other.jpg")
    assert importing.rows(USUAL | {"media": "other.jpg|noon.png"}).unchanged == 1


DIFFERENT = [
    (
        {"text": "One text, long enough to be cut when it is seen"},
        "text",
        'another text: "… it is shown" there, "… it is seen" here.',
    ),
    ({"link": "https://example.com/2"}, "link", "the link https://example.com/1."),
    ({"media": "dawn.png|dusk.png"}, "media", "other media (2)."),
    ({"media": "dawn.png", "alt": "dawn"}, "media", "2 media."),
    ({"media": "noon.png|dawn.png"}, "media", "other media (1, 2)."),
    ({"alt": "dawn|"}, "alt", "other alt texts."),
    ({"channel": "Page B"}, "channel", "is for Page A."),
    ({"publish_at": "2026-12-07 09:01"}, "publish_at", "2026-12-07 09:00 Asia/Ho_Chi_Minh."),
]


@pytest.mark.parametrize(("change", "column", "words"), DIFFERENT)
def test_other_content_is_an_error_that_says_what_differs(
    importing: Importing, change: dict[str, str], column: str, words: str
) -> None:
    importing.rows(USUAL)
    for rows in ([USUAL | change], [{"ref": "b"}, USUAL | change]):
        report = importing.rows(*rows)
        assert report.exit_code == 2
        bad = report.rows[-1]
        assert (bad.status, bad.column) == ("bad", column)
        assert bad.message.startswith("Post 1 has this ref and")
        assert bad.message.endswith(words)
        assert bad.fix.startswith("To post something else, give this row another ref")
    assert len(importing.all("SELECT 1 FROM posts")) == 1


@pytest.mark.parametrize(("change", "column", "words"), DIFFERENT)
def test_twice_in_one_file_with_other_content(
    importing: Importing, change: dict[str, str], column: str, words: str
) -> None:
    report = importing.rows(USUAL, USUAL | change)
    assert [row.status for row in report.rows] == ["skipped", "bad"]
    assert report.rows[1].column == column
    assert report.rows[1].message.startswith("Line 1 has this ref and")
    assert importing.is_empty()


def test_everything_that_differs_is_said(importing: Importing, faults: Faults) -> None:
    importing.rows(USUAL)
    other = {"ref": "a", "text": "x", "channel": "Page B"}
    assert [column for _, column, _ in faults(importing.rows(other))] == [
        "text",
        "link",
        "media",
        "channel",
    ]


def test_twice_in_one_file_with_the_same_content(importing: Importing) -> None:
    report = importing.rows({"ref": "a"}, {"ref": " a "})
    assert [row.status for row in report.rows] == ["added", "unchanged"]
    assert report.rows[1].message == "Says the same as line 1; adds nothing."
    assert report.rows[0].job_id == report.rows[1].job_id
    report = importing.rows({"ref": "a", "text": "new"}, {"ref": "a", "text": "new"})
    assert [row.status for row in report.rows] == ["bad", "bad"]


def test_a_ref_shared_with_a_bad_row(importing: Importing, faults: Faults) -> None:
    report = importing.rows({"ref": "a", "publish_at": ""}, {"ref": "a"}, {"ref": "a", "text": ""})
    assert faults(report) == [
        (1, "publish_at", "time-missing"),
        (2, "ref", "ref-twice"),
        (3, "ref", "ref-twice"),
        (3, "text", "empty"),
    ]


def test_a_crash_half_way_stores_nothing(
    importing: Importing, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"media": "dawn.png"}, {}, {}]
    calls: Iterator[int] = iter(range(9))

    def dying(*args: object, **options: object) -> object:
        if next(calls) == 1:
            raise ZeroDivisionError
        return ledger.enqueue(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("publisher.editorial.posts.ledger.enqueue", dying)
    monkeypatch.setattr("publisher.editorial.rows._ROWS", 2)
    with pytest.raises(ZeroDivisionError):
        importing.rows(*rows)
    assert importing.is_empty()
    monkeypatch.undo()
    assert importing.rows(*rows).added == 3


def test_a_lost_connection_stores_nothing(importing: Importing) -> None:
    def cut(done: int, rows: int) -> None:
        # While the jobs are stored, in the middle of the transaction.
        if done > rows // 2:
            with importing.database.engine.connect() as other:
                other.execute(
                    text(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    )
                )

    many = [{"ref": str(n)} for n in range(2500)]
    with pytest.raises(Exception, match=r"terminat|closed|lost"):
        importing.rows(*many, on_row=cut)
    assert importing.is_empty()
    assert importing.rows(*many).added == 2500


def at_once(first: Callable[[], Report], second: Callable[[], Report]) -> list[Report]:
    """Both reports, the two imports having judged their rows before either stores one."""
    barrier = threading.Barrier(2, timeout=30)
    store = importer._store
    reports: dict[int, Report] = {}

    def waiting(*args: object, **options: object) -> object:
        barrier.wait()
        return store(*args, **options)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importer, "_store", waiting)
        threads = [
            threading.Thread(target=lambda n=n, run=run: reports.__setitem__(n, run()))
            for n, run in enumerate((first, second))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    return [reports[0], reports[1]]


def test_two_imports_at_once_double_nothing(importing: Importing) -> None:
    rows = [{"ref": f"{n}", "text": f"{n}", "media": "dawn.png"} for n in range(1500)]
    backwards = rows[::-1]
    (importing.folder / "b").mkdir()
    (importing.folder / "b" / "dawn.png").write_bytes((importing.folder / "dawn.png").read_bytes())
    other = Importing(
        importing.database, importing.registry, importing.settings, importing.folder / "b"
    )
    one, two = at_once(lambda: importing.rows(*rows), lambda: other.rows(*backwards))
    assert sorted([one.added, two.added]) == [0, 1500]
    assert sorted([one.unchanged, two.unchanged]) == [0, 1500]
    assert one.exit_code == two.exit_code == 0
    assert len(importing.all("SELECT 1 FROM jobs")) == 1500


@pytest.mark.parametrize("skip_bad", [False, True])
def test_the_later_of_two_with_other_content_is_told(
    importing: Importing, *, skip_bad: bool
) -> None:
    (importing.folder / "b").mkdir()
    other = Importing(
        importing.database, importing.registry, importing.settings, importing.folder / "b"
    )
    reports = at_once(
        lambda: importing.rows({"ref": "a", "text": "one"}, {"ref": "b"}, skip_bad=skip_bad),
        lambda: other.rows({"ref": "a", "text": "two"}, {"ref": "c"}, skip_bad=skip_bad),
    )
    won, lost = sorted(reports, key=lambda report: report.bad)
    assert [row.status for row in won.rows] == ["added", "added"]
    assert [row.status for row in lost.rows] == ["bad", "added" if skip_bad else "skipped"]
    assert lost.exit_code == (1 if skip_bad else 2)
    assert len(importing.all("SELECT 1 FROM jobs")) == (3 if skip_bad else 2)
    assert len(importing.all("SELECT 1 FROM posts WHERE ref = 'a'")) == 1
