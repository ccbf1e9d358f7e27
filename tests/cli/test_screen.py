"""What is written: nothing obeyed that should be shown, nothing cut that is piped."""

from __future__ import annotations

import pytest

from publisher.cli import screen
from publisher.cli.screen import Column


def test_control_characters_are_shown_and_not_obeyed() -> None:
    assert screen.visible("a\x1b[31mb\x07\x7f\x9b\n") == "a␛[31mb␇␡�␊"
    assert screen.excerpt("one\n two  three", 9) == "one two…"
    assert screen.excerpt("[bold]not markup[/]", 40) == "[bold]not markup[/]"


def test_a_piped_table_is_cut_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    link = "https://page.example/" + "x" * 300
    rows = [["8f3a", link, "[red]text[/]"], ["77b0", "", "سلام"]]
    screen.show_table([Column("ID", whole=True), Column("LINK"), Column("TEXT")], rows)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["ID", "LINK", "TEXT"],
        ["8f3a", link, "[red]text[/]"],
        ["77b0", "-", "سلام"],
    ]


def test_a_table_has_no_colour_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    screen.show_table([Column("ID")], [["8f3a"]])
    assert "\x1b" not in capsys.readouterr().out
