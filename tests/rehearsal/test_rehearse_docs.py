"""What the page for teams says is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from publisher.cli.rehearse import app
from publisher.rehearsal.conduct import RESTORED
from publisher.rehearsal.report.machine import as_json
from publisher.rehearsal.scenarios import SCENARIOS
from tests.rehearsal import samples

TEXT = (Path(__file__).parents[2] / "docs" / "rehearse.md").read_text()


def commands() -> dict[str, Any]:
    rehearse = typer.main.get_command(app)
    assert isinstance(rehearse, TyperGroup)
    return {"": rehearse, **rehearse.commands}


def rows(head: str) -> list[list[str]]:
    """What the first column of a table names, row by row."""
    (table,) = re.findall(rf"^\| {head} \|.*\n\|---.*\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    firsts = (row.split("|")[1] for row in table.splitlines())
    return [re.findall(r"`([\w-]+)`", first) for first in firsts]


def test_each_scenario_stands_in_the_table() -> None:
    assert rows("scenario") == [[name] for name in (*SCENARIOS, RESTORED)]


def test_each_key_of_the_report_is_explained() -> None:
    told = {key for row in rows("keys") for key in row}
    assert {"schema", *told} == {*as_json(samples.broken())}


def lines() -> list[str]:
    """Commands of the page, each with its options in one line."""
    joined = re.sub(r"\s*\\\n\s+", " ", TEXT)
    joined = re.sub(r"(publisher rehearse[^\n]*)\n\s+(?=--)", r"\1 ", joined)
    joined = re.sub(r"(publisher rehearse[^\n]*)\n\s+(?=--)", r"\1 ", joined)
    return re.findall(r"publisher rehearse ([^#`|\n]+)", joined)


@pytest.mark.parametrize("line", lines())
def test_each_command_of_the_page_is_one(line: str) -> None:
    known = commands()
    words = line.split()
    name = words[0] if words[0] in known else ""
    assert name or words[0].startswith("--")
    options = {option for one in known[name].params for option in one.opts}
    given = {word for word in words if word.startswith("--")}
    assert given <= options


def test_there_are_commands_on_the_page() -> None:
    assert len(lines()) > 10
    assert any("--lanes" in line and "--database-url" in line for line in lines())
    assert any("--app-url" in line and "--direct-url" in line for line in lines())
