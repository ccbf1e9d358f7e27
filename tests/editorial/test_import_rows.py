"""Each refusal of a row: its column, its words, and what to do; and nothing stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from publisher.engine.registry import Registry
from tests.editorial.conftest import NOW, Importing

EXAMPLES = Path(__file__).parents[2] / "examples"
PNG = (EXAMPLES / "media" / "dawn.png").read_bytes()

REFUSED = [
    ({"ref": ""}, "ref", "Is empty.", "Give each post a name of its own"),
    ({"ref": " "}, "ref", "Is empty.", "Give each post a name of its own"),
    ({"ref": "a\nb"}, "ref", "Holds a line break", "Take it out."),
    ({"ref": "x" * 201}, "ref", "Has 201 characters; a ref has at most 200.", "Shorten it."),
    ({"channel": ""}, "channel", "Is empty.", "Give a name or id, such as Page A."),
    (
        {"channel": "Page C"},
        "channel",
        'There is no channel "Page C".',
        'Did you mean "Page B" or "Page A"?',
    ),
    ({"channel": "99"}, "channel", 'There is no channel "99".', 'There is "Page A", "Page B".'),
    ({"publish_at": ""}, "publish_at", "There is no time to publish at.", "Write it as 2026-12-07"),
    (
        {"publish_at": "2026-12-01 09:00"},
        "zone",
        '"2026-12-01 09:00" names no zone.',
        "Fill in zone, such as Asia/Ho_Chi_Minh",
    ),
    (
        {"publish_at": "2026-12-01 09:00", "zone": "Hanoi"},
        "zone",
        'Zone "Hanoi" is unknown.',
        "Give an IANA name such as Asia/Ho_Chi_Minh",
    ),
    (
        {"publish_at": "2026-11-28 09:00Z"},
        "publish_at",
        "2026-11-28 09:00 UTC is already past; it was useful until 2026-11-29 09:00.",
        "Give a later time, or the word now.",
    ),
    (
        {"publish_at": "2027-03-14 02:30", "zone": "America/New_York"},
        "publish_at",
        "02:30 does not exist on 14 March in New York; clocks jump from 2:00 to 3:00.",
        "Choose 03:30 or 01:30.",
    ),
    ({"text": ""}, "text", "This post is empty.", "Write a text, or add a link"),
    ({"text": " \n"}, "text", "This post is empty.", "Write a text, or add a link"),
    ({"text": "a\0b"}, "text", "Holds the character NUL at position 2.", "Take it out."),
    (
        {"text": "\ud83d"},
        "text",
        "Holds half of a surrogate pair at position 1, which is no character.",
        "Write the whole character.",
    ),
    ({"text": "x" * 1_000_001}, "text", "Holds 1,000,001 bytes; a cell may hold", "Shorten it."),
    ({"link": "example.com"}, "link", "The link is not a web address.", "It starts with https://"),
    (
        {"link": " https://example.com"},
        "link",
        "The link is not a web address.",
        "It starts with https://",
    ),
    ({"link": "https:///x"}, "link", "The link is not a web address.", "It starts with https://"),
    ({"link": "https://[x"}, "link", "The link is not a web address.", "It starts with https://"),
    ({"link": "javascript:x"}, "link", "The link is not a web address.", "It starts with https://"),
    ({"media": "none.png"}, "media", "There is no file", "Paths start from the folder"),
    ({"media": "text.png"}, "media", "text.png is neither a picture nor a video.", "Give a JPEG"),
    ({"media": "empty.png"}, "media", "empty.png is empty.", "Give the picture or video itself."),
    ({"media": "folder"}, "media", "is not a file.", "Name a picture or video."),
    ({"media": "a.png||a.png"}, "media", "Item 2 is empty.", "Take out the | that is too many."),
    ({"media": "https://x y/a.png"}, "media", "is no web address.", "It starts with https://"),
    (
        {"media": "https://example.com/a"},
        "media",
        'The address "https://example.com/a" does not end like a picture or video.',
        "Give one that ends in the type: JPEG, PNG",
    ),
    (
        {"publish_at": "2026-12-07 09:00", "zone": "UTC\0", "channel": "Page A"},
        "zone",
        "Holds the character NUL at position 4.",
        "Take it out.",
    ),
    ({"channel": "Page A\0"}, "channel", "Holds the character NUL at", "Take it out."),
    ({"alt": "x"}, "alt", "There is an alt text, but no media.", "Fill in media, or take alt out."),
    (
        {"media": "a.png", "alt": "x|y"},
        "alt",
        "There are 2 alt texts for 1 media.",
        r"Give one for each, | between them, empty where there is none; \| is a bar itself.",
    ),
    (
        {"text": "x" * 2001},
        "text",
        "Stub takes 2,000 characters as it counts them; this is 2,001.",
        "Shorten by 1, or write its own text.",
    ),
    ({"text": "a\x07b"}, "text", "The text holds the control character U+0007", "Take it out."),
    ({"link": "https://e.org/" + "x" * 2048}, "link", "A link has at most 2,048", "Give a shorter"),
    ({"media": "|".join(["a.png"] * 5)}, "media", "Stub takes 4 photos and videos", "Take 1 out."),
    ({"media": "https://e.org/a.gif"}, "media", "Photo 1 is image/gif; Stub takes", "Convert it."),
    (
        {"media": "a.png", "alt": "x" * 101},
        "alt",
        "The alt text of photo 1 has 101",
        "Shorten by 1",
    ),
]


@pytest.fixture
def folder(importing: Importing) -> Path:
    (importing.folder / "a.png").write_bytes(PNG)
    (importing.folder / "text.png").write_bytes(b"some text, whatever its name says")
    (importing.folder / "empty.png").touch()
    (importing.folder / "folder").mkdir()
    return importing.folder


def test_every_refusal_has_its_column_words_and_fix(importing: Importing, folder: Path) -> None:
    report = importing.rows(*(row for row, *_ in REFUSED))
    assert report.exit_code == 2
    assert report.bad == len(REFUSED)
    for row, (given, column, what, fix) in zip(report.rows, REFUSED, strict=True):
        assert row.status == "bad", given
        assert (row.column, what in row.message) == (column, True), (given, row.faults)
        assert row.fix.startswith(fix), (given, row.faults)
        assert row.job_id is None
    assert importing.is_empty()


def test_all_that_is_wrong_with_a_row_is_said_at_once(
    importing: Importing, folder: Path, faults: Callable[..., list[tuple[int, str, str]]]
) -> None:
    wrong = {
        "ref": "",
        "channel": "Page Q",
        "publish_at": "soon",
        "zone": "Mars/Base",
        "link": "here",
        "media": "none.png|text.png",
        "alt": "one",
        "text": "a\0b",
    }
    assert faults(importing.rows(wrong)) == [
        (1, "ref", "ref-missing"),
        (1, "channel", "channel-unknown"),
        (1, "text", "character-not-allowed"),
        (1, "publish_at", "time-unreadable"),
        (1, "zone", "zone-unknown"),
        (1, "link", "link-not-an-address"),
        (1, "media", "media-not-found"),
        (1, "media", "media-type-unknown"),
        (1, "alt", "alt-count"),
    ]


def test_joiners_are_no_fault(importing: Importing) -> None:
    link = "https://example.com/می\u200cشود"
    assert importing.rows({"ref": "می\u200cشود", "link": link, "text": "👩\u200d🌾"}).added == 1


def test_what_the_platform_says_stands_at_its_column(
    importing: Importing, folder: Path, faults: Callable[..., list[tuple[int, str, str]]]
) -> None:
    wrong = {"text": "x" * 2001, "link": "here", "media": "https://e.org/a.gif", "alt": "y" * 101}
    assert faults(importing.rows(wrong)) == [
        (1, "text", "text-too-long"),
        (1, "link", "link-not-an-address"),
        (1, "media", "media-type"),
        (1, "alt", "alt-too-long"),
    ]


def test_a_zone_that_cannot_be_read_hides_nothing_of_the_content(
    importing: Importing, faults: Callable[..., list[tuple[int, str, str]]]
) -> None:
    wrong = {"text": "x" * 2001, "publish_at": "2026-12-07 09:00", "zone": "UTC\0"}
    assert faults(importing.rows(wrong)) == [
        (1, "text", "text-too-long"),
        (1, "zone", "character-not-allowed"),
    ]


def test_without_a_channel_what_no_platform_takes_is_said(
    importing: Importing, faults: Callable[..., list[tuple[int, str, str]]]
) -> None:
    assert faults(importing.rows({"channel": "Page Q", "text": "a\x07" * 1500})) == [
        (1, "channel", "channel-unknown"),
        (1, "text", "character-not-allowed"),
    ]


def test_a_channel_whose_platform_is_not_there(importing: Importing) -> None:
    importing.registry = Registry([])
    (row,) = importing.rows({"text": ""}).rows
    assert [fault.code for fault in row.faults] == ["platform-unknown", "empty"]
    assert (row.column, row.message) == ("channel", "There is no platform 'stub' here.")


@pytest.mark.parametrize("how", [{}, {"dry_run": True}])
def test_a_note_keeps_no_row_from_being_imported(
    importing: Importing, folder: Path, how: dict[str, bool]
) -> None:
    bare, told = {"media": "a.png"}, {"media": "a.png", "alt": "Dawn", "channel": "Page B"}
    report = importing.rows(bare, told, **how)
    assert (report.bad, report.exit_code) == (0, 0)
    first, second = report.rows
    assert [(note.column, note.code) for note in first.notes] == [("alt", "alt-missing")]
    assert (first.faults, first.message, second.notes) == ((), first.note, ())


def test_one_bad_row_stores_nothing(importing: Importing) -> None:
    report = importing.rows({"text": "good"}, {"publish_at": ""}, {"text": "also good"})
    assert [row.status for row in report.rows] == ["skipped", "bad", "skipped"]
    assert (report.bad, report.skipped, report.added, report.exit_code) == (1, 2, 0, 2)
    assert importing.is_empty()
    assert importing.progress[-1] == (3, 3)


def test_skip_bad_stores_the_good_ones_and_exits_1(importing: Importing) -> None:
    report = importing.rows(
        {"text": "good"}, {"publish_at": ""}, {"text": "also good"}, skip_bad=True
    )
    assert [row.status for row in report.rows] == ["added", "bad", "added"]
    assert report.exit_code == 1
    assert importing.texts() == ["good", "also good"]


@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_dry_run_stores_nothing(importing: Importing, *, skip_bad: bool) -> None:
    rows: list[Mapping[str, Any]] = [{"text": "good"}, {"publish_at": ""}]
    report = importing.rows(*rows, dry_run=True, skip_bad=skip_bad)
    assert [row.status for row in report.rows] == ["would_add", "bad"]
    assert report.exit_code == (1 if skip_bad else 2)
    assert importing.rows({}, dry_run=True).exit_code == 0
    assert importing.is_empty()


def test_what_is_stored(importing: Importing, folder: Path) -> None:
    report = importing.rows(
        {"publish_at": "2026-12-07 09:00", "zone": "Asia/Ho_Chi_Minh", "channel": "page b"},
        {"media": "a.png|https://example.com/b.MP4?x=1", "alt": r"one \| two|"},
    )
    assert (report.exit_code, report.added) == (0, 2)
    first, second = importing.all(
        "SELECT ref, posts.created_by, number, content, approved_by, channel_id, publish_at, zone"
        "  FROM posts JOIN post_versions v ON post_id = posts.id"
        "  JOIN approvals ON version_id = v.id JOIN post_channels p ON p.post_id = posts.id"
        " ORDER BY posts.id"
    )
    assert (first.ref, first.created_by, first.approved_by) == ("r1", "tester", "tester")
    assert f"{first.publish_at:%Y-%m-%d %H:%M %Z}" == "2026-12-07 02:00 UTC"
    assert (first.channel_id, first.zone, first.number) == (2, "Asia/Ho_Chi_Minh", 1)
    assert (second.publish_at, second.zone) == (NOW, "UTC")
    one, two = importing.all(
        "SELECT jobs.id, key, kind, queue, due_at, useful_until, jobs.post_id, version_id, version,"
        "       platform_key,"
        "       c.content = v.content AS is_frozen"
        "  FROM jobs JOIN job_contents c ON job_id = jobs.id"
        "  JOIN post_versions v ON v.id = version_id ORDER BY jobs.id"
    )
    assert (one.id, two.id) == (report.rows[0].job_id, report.rows[1].job_id)
    assert one.key == f"post:{one.post_id}/channel:2/at:2026-12-07T02:00:00.000000Z"
    assert one.platform_key == f"stub {one.key} 02:00"
    assert (one.kind, one.queue, one.version, one.is_frozen) == ("publish", "publish", 1, True)
    assert (one.useful_until - one.due_at).total_seconds() == importing.settings.useful_for_seconds
    assert '"alt":"one | two"' in second.content
    assert '"type":"video/mp4","url":"https://example.com/b.MP4?x=1"' in second.content
    ((kept,),) = importing.all("SELECT bytes FROM media_chunks")
    assert kept == PNG


def test_now_is_the_databases_clock(importing: Importing) -> None:
    (before,) = importing.all("SELECT clock_timestamp() AS at")
    importing.rows({}, now=None)
    (job,) = importing.all("SELECT due_at, clock_timestamp() AS at FROM jobs")
    assert before.at < job.due_at < job.at


def test_a_draft_is_neither_approved_nor_scheduled(importing: Importing) -> None:
    (row,) = importing.rows({}, draft=True).rows
    assert (row.status, row.job_id, row.note) == ("added", None, "Added as a draft: not approved.")
    assert not importing.all("SELECT 1 FROM approvals")
    assert not importing.all("SELECT 1 FROM jobs")
    (row,) = importing.rows({}).rows
    assert row.status == "unchanged"
    assert "as a draft" in row.note


def test_posts_due_together_go_out_in_the_order_of_the_file(importing: Importing) -> None:
    texts = [f"{n}" for n in range(1234)]
    importing.rows(*({"ref": f"{9999 - int(n)}", "text": n} for n in texts))
    assert importing.texts() == texts
    assert importing.progress[-1] == (1234, 1234)
    assert importing.progress == sorted(importing.progress)


def test_a_file_has_at_most_so_many_rows(
    importing: Importing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("publisher.editorial.imports.importer.ROWS", 2)
    with pytest.raises(Exception, match="more than 2 rows"):
        importing.rows({}, {}, {})
    assert importing.rows({}, {}).added == 2
