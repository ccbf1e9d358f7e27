"""What is worth knowing of a post, as commands say it: at every step, and row by row."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Terminal

pytestmark = pytest.mark.timeout(500)

NOTICE = "The library in the old street opens at nine on Saturday and the reading room at ten."
TWIN = "Note · Page A: The same text as a post scheduled here for "
FIX = "If it is meant to go out once, keep one of the two. (alike-twin)"


def test_what_is_like_a_post_is_said_at_every_step(terminal: Terminal, page: str) -> None:
    said = terminal.import_posts(f"first,Page A,{NOTICE},2030-12-07T09:00:00Z")
    assert "Note" not in said
    words = ("posts", "new", "--text", NOTICE, "--channel", "Page A", "--ref", "second")
    assert TWIN not in terminal.done(*words)  # it has no time yet
    terminal.done("posts", "approve", "second")
    words = ("posts", "schedule", "second", "--at", "2030-12-08T09:00:00Z")
    said = terminal.done(*words)
    assert f"{TWIN}7 Dec. {FIX}" in said
    assert "Version 1 is scheduled: " in said
    for verb in (("show",), ("edit", "--text", f"{NOTICE}!"), ("submit",), ("approve",)):
        name, *options = verb
        said = terminal.done("posts", name, "second", *options)
        assert "Note · Page A: " in said, verb
        assert "a post scheduled here for 7 Dec" in said, verb
    assert "Length    " in terminal.done("posts", "show", "second")
    assert f"{len(NOTICE) + 1} of 63,206 characters on Page A" in terminal.done(
        "posts", "show", "second"
    )
    (told,) = json.loads(terminal.done("posts", "show", "second", "--json"))["problems"]
    assert (told["channel"], told["code"], told["must_be_fixed"]) == ("Page A", "alike", False)


def test_an_import_prints_the_notes_of_its_rows(terminal: Terminal, page: str) -> None:
    rows = (
        f"first,Page A,{NOTICE},2030-12-07T09:00:00Z",
        f"second,Page A,{NOTICE},2030-12-08T09:00:00Z",
    )
    said = terminal.import_posts(*rows)
    assert (
        "Note · line 3, second, text: The same text as a post scheduled here for 7 Dec (line 2). "
        f"{FIX}"
    ) in said
    assert "2 rows · 2 added" in said
    file = terminal.folder / "posts.csv"
    file.write_text(file.read_text().replace("second", "third"))
    told = terminal.listed("posts", "import", "--dry-run", str(file))
    assert [[note["code"] for note in row["notes"]] for row in told] == [[], ["alike-twin"] * 2]


def test_alt_texts_where_a_channel_wants_them(terminal: Terminal, page: str) -> None:
    file = terminal.folder / "posts.csv"
    link = "https://example.com/door.png"
    file.write_text(f"ref,channel,text,publish_at,media\nr,Page A,Hi,now,{link}\n")
    said = terminal.done("posts", "import", "--dry-run", str(file))
    assert "Note · line 2, r, alt: Photo 1 has no alt text. Say what it shows" in said
    terminal.done("channels", "set", "Page A", "--alt-text")
    refused = terminal.run("posts", "import", "--dry-run", str(file))
    assert refused.returncode == 2
    assert "line 2, r, alt: Photo 1 has no alt text." in refused.stdout
    assert "Note" not in refused.stdout
