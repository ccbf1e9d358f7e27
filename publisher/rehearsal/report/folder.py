"""Where reports are kept: a folder for each rehearsal, ``1``, ``2`` and so on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from publisher.rehearsal.report import junit, page
from publisher.rehearsal.report.machine import as_json, log_names
from publisher.rehearsal.report.report import Report

PAGE: Final = "index.html"
JUNIT: Final = "junit.xml"
FACTS: Final = "report.json"


def next_run(folder: Path) -> int:
    """Take the next number: makes ``folder/N``, which nobody else is given."""
    folder.mkdir(parents=True, exist_ok=True)
    number = max((int(one.name) for one in folder.iterdir() if one.name.isdecimal()), default=0)
    while True:
        number += 1
        try:
            (folder / str(number)).mkdir()
        except FileExistsError:
            continue
        return number


def write(report: Report, folder: Path) -> list[Path]:
    """Write the report into ``folder``, made where it is not there; returns the files.

    The log of each schedule that broke a rule lies beside it, as ``machine.log_names`` says.
    """
    folder.mkdir(parents=True, exist_ok=True)
    facts = json.dumps(as_json(report), indent=1) + "\n"
    contents = {
        PAGE: page.as_html(report).encode(),
        JUNIT: junit.as_xml(report),
        FACTS: facts.encode(),
    }
    for failure, name in zip(report.failures, log_names(report), strict=True):
        if name is not None:
            contents[name] = failure.log.encode(errors="backslashreplace")
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]
