"""What rows of an import are like, and the alt texts a channel wants, row by row."""

from __future__ import annotations

from publisher.editorial import channel_rules, channels
from publisher.editorial.channel_rules import Change
from publisher.editorial.imports import likeness
from tests.editorial.conftest import Importing

NOTICE = "The library in the old street opens at nine on Saturday, and the reading room at ten."


def row(text: str, at: str = "2026-12-05 09:00Z", **more: object) -> dict[str, object]:
    return {"text": text, "publish_at": at, **more}


def test_a_row_like_what_is_scheduled_is_told_so_and_stored(importing: Importing) -> None:
    importing.rows(row(NOTICE))
    report = importing.file(
        "ref,channel,text,publish_at\n"
        f"again,Page A,{NOTICE.replace(',', '')},2026-12-06 09:00Z\n"
        f"elsewhere,Page B,{NOTICE.replace(',', '')},2026-12-06 09:00Z\n"
        "other,Page A,The swimming pool is closed,2026-12-06 09:00Z\n"
    )
    first, second, third = report.rows
    (note,) = first.notes
    assert (note.column, note.code) == ("text", "alike")
    assert note.message.endswith("% of a post scheduled here for 5 Dec.")
    assert note.fix == "Check that both are meant."
    assert (first.status, first.faults) == ("added", ())
    assert (second.notes, third.notes) == ((), ())


def test_rows_of_one_file_are_compared_too_in_a_dry_run_as_well(importing: Importing) -> None:
    rows = [row(NOTICE), row(NOTICE, "2026-12-06 09:00Z"), row(NOTICE, "2027-03-06 09:00Z")]
    for dry_run in (True, False):
        report = importing.rows(*rows, dry_run=dry_run)
        notes = [[(note.code, note.message) for note in one.notes] for one in report.rows]
        said = "The same text as a post scheduled here for 5 Dec (line 1)."
        # The third is three months later: that is meant.
        assert notes == [[], [("alike-twin", said)], []]
    again = importing.rows(*rows)
    assert {(one.status, one.notes) for one in again.rows} == {("unchanged", ())}


def test_the_same_pictures_under_another_text(importing: Importing) -> None:
    link = "https://example.com/door.png"
    report = importing.rows(
        row("One text", media=[link], alt=["a door"]),
        row("Quite another", media=[link], alt=["a door"]),
    )
    (note,) = report.rows[1].notes
    assert (note.column, note.code) == ("media", "alike")
    assert note.message.startswith("The same photos as a post scheduled here for 5 Dec")


def test_so_many_rows_back_and_no_further(importing: Importing) -> None:
    count = likeness.ROWS_BEFORE
    between = [row(f"{number} is another number") for number in range(count - 1)]
    near = importing.rows(row(NOTICE), *between, row(NOTICE), dry_run=True)
    assert len(near.rows[-1].notes) == 1
    far = importing.rows(row(NOTICE), *between, row("one more"), row(NOTICE), dry_run=True)
    assert far.rows[-1].notes == ()


def test_a_channel_that_wants_alt_texts_takes_no_row_without(importing: Importing) -> None:
    with importing.database.engine.begin() as conn:
        page = channels.find(conn, "Page A")
        channel_rules.change(conn, page, Change(alt_text=True), who="w")
    link = "https://example.com/door.png"
    report = importing.rows(row("A", media=[link]), row("B", media=[link], channel="Page B"))
    bad, skipped = report.rows
    assert [(fault.column, fault.code) for fault in bad.faults] == [("alt", "alt-missing")]
    assert (skipped.status, [note.code for note in skipped.notes]) == ("skipped", ["alt-missing"])
    assert importing.is_empty()
