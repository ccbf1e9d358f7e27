"""One table of awkward local times, asked of everything that reads or shows one.

The workspace, whoever looks and the machine are in three zones. What a row expects is counted by
hand from the rules of its zone: offsets, never what the code says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time as wall_clock
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from publisher.editorial import clock, posting_times, times
from publisher.editorial.times import TimeRefused
from tests.editorial.conftest import Importing

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
MACHINES = {
    "unset": None,
    "elsewhere": "America/St_Johns",
    "posix": "XYZ-9:30",
    "nonsense": "Nowhere/At_All",
    "empty": "",
    "a path": ":/dev/null",
}


@dataclass(frozen=True)
class Case:
    """A local time there. ``at``: its instant, or where it has none or two, the ``choices``.

    ``posted``: when a posting time of that wall clock is, on that date. ``seen``: what a viewer in
    ``viewer`` is shown, of ``at`` or the first choice.
    """

    name: str
    zone: str
    wall: str
    posted: str
    viewer: str
    seen: str
    at: str = ""
    code: str = ""
    choices: tuple[str, ...] = ()


CASES = (
    Case(
        "plain", "Asia/Ho_Chi_Minh", "2026-12-07 09:00", "2026-12-07T02:00Z", "Asia/Tehran",
        "Mon 7 Dec 2026 09:00 Ho Chi Minh City (05:30 for you)", at="2026-12-07T02:00Z",
    ),
    Case(
        "gap", "America/New_York", "2027-03-14 02:30", "2027-03-14T07:30Z", "Asia/Kolkata",
        "Sun 14 Mar 2027 03:30 New York (13:00 for you)", code="time-not-real",
        choices=("2027-03-14T07:30Z", "2027-03-14T06:30Z"),
    ),
    Case(
        "the minute a gap begins", "America/New_York", "2027-03-14 02:00", "2027-03-14T07:00Z",
        "UTC", "Sun 14 Mar 2027 03:00 New York (07:00 for you)", code="time-not-real",
        choices=("2027-03-14T07:00Z", "2027-03-14T06:00Z"),
    ),
    Case(
        "the minute a gap is over", "America/New_York", "2027-03-14 03:00", "2027-03-14T07:00Z",
        "UTC", "Sun 14 Mar 2027 03:00 New York (07:00 for you)", at="2027-03-14T07:00Z",
    ),
    Case(
        "fold", "America/New_York", "2027-11-07 01:30", "2027-11-07T05:30Z", "Asia/Tokyo",
        "Sun 7 Nov 2027 01:30 (UTC-04:00) New York (14:30 for you)", code="time-twice",
        choices=("2027-11-07T05:30Z", "2027-11-07T06:30Z"),
    ),
    Case(
        "half an hour's gap", "Australia/Lord_Howe", "2027-10-03 02:15", "2027-10-02T15:45Z",
        "Europe/Berlin", "Sun 3 Oct 2027 02:45 Lord Howe (Sat 2 Oct 17:45 for you)",
        code="time-not-real", choices=("2027-10-02T15:45Z", "2027-10-02T15:15Z"),
    ),
    Case(
        "half an hour's fold", "Australia/Lord_Howe", "2027-04-04 01:45", "2027-04-03T14:45Z",
        "Europe/Berlin",
        "Sun 4 Apr 2027 01:45 (UTC+11:00) Lord Howe (Sat 3 Apr 16:45 for you)",
        code="time-twice", choices=("2027-04-03T14:45Z", "2027-04-03T15:15Z"),
    ),
    Case(
        "+03:30", "Asia/Tehran", "2027-03-22 00:30", "2027-03-21T21:00Z", "America/Caracas",
        "Mon 22 Mar 2027 00:30 Tehran (Sun 21 Mar 17:00 for you)", at="2027-03-21T21:00Z",
    ),
    Case(
        "+05:45", "Asia/Kathmandu", "2026-12-07 00:15", "2026-12-06T18:30Z", "Asia/Kolkata",
        "Mon 7 Dec 2026 00:15 Kathmandu (00:00 for you)", at="2026-12-06T18:30Z",
    ),
    Case(
        "the year's last minute", "Pacific/Kiritimati", "2026-12-31 23:59", "2026-12-31T09:59Z",
        "Pacific/Pago_Pago", "Thu 31 Dec 2026 23:59 Kiritimati (Wed 30 Dec 22:59 for you)",
        at="2026-12-31T09:59Z",
    ),
    Case(
        "the year's first minute", "Pacific/Pago_Pago", "2027-01-01 00:00", "2027-01-01T11:00Z",
        "Pacific/Kiritimati", "Fri 1 Jan 2027 00:00 Pago Pago (Sat 2 Jan 01:00 for you)",
        at="2027-01-01T11:00Z",
    ),
    Case(
        "a gap at midnight", "Asia/Beirut", "2027-03-28 00:30", "2027-03-27T22:30Z",
        "Asia/Ho_Chi_Minh", "Sun 28 Mar 2027 01:30 Beirut (05:30 for you)",
        code="time-not-real", choices=("2027-03-27T22:30Z", "2027-03-27T21:30Z"),
    ),
    Case(
        "the same clock for both", "Asia/Ho_Chi_Minh", "2026-12-07 09:00", "2026-12-07T02:00Z",
        "Asia/Bangkok", "Mon 7 Dec 2026 09:00 Ho Chi Minh City", at="2026-12-07T02:00Z",
    ),
    Case(
        "a viewer in a fold", "Asia/Tokyo", "2027-11-07 15:30", "2027-11-07T06:30Z",
        "America/New_York", "Sun 7 Nov 2027 15:30 Tokyo (01:30 (UTC-05:00) for you)",
        at="2027-11-07T06:30Z",
    ),
)  # fmt: skip
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def instant(written: str) -> datetime:
    return datetime.fromisoformat(written)


def as_written(at: datetime) -> str:
    assert at.tzinfo is UTC
    return f"{at:%Y-%m-%dT%H:%MZ}"


def scheduled(case: Case) -> dict[str, Any]:
    """What reading its wall clock in the workspace's zone gives."""
    try:
        moment = times.read(case.wall, case.zone, now=NOW, useful_for=timedelta(days=1))
    except TimeRefused as refused:
        return {"code": refused.code, "choices": [as_written(at) for at in refused.choices]}
    return {"at": as_written(moment.at)}


def posted(case: Case) -> list[str]:
    """Its posting time, from the day before to the day after."""
    wall = datetime.fromisoformat(case.wall)
    weekly = [posting_times.PostingTime(wall.isoweekday(), wall.time())]
    around = wall.replace(tzinfo=UTC)
    days = timedelta(days=3)
    zone = ZoneInfo(case.zone)
    found = posting_times.occurrences(weekly, zone, around - days, around + days)
    return [as_written(at) for at in found]


def seen(case: Case) -> str:
    at = instant(case.at or case.choices[0])
    return clock.shown(at, clock.zone(case.zone), clock.zone(case.viewer))


def answers() -> dict[str, dict[str, Any]]:
    """Every answer to every row, as this process gives it."""
    return {
        case.name: {"scheduled": scheduled(case), "posted": posted(case), "seen": seen(case)}
        for case in CASES
    }


@pytest.fixture(scope="module")
def machines() -> dict[str, dict[str, dict[str, Any]]]:
    """The answers of machines in several zones, some of which are none."""
    code = (
        "import json, time; time.tzset()\n"
        "from tests.editorial.test_clock_table import answers\n"
        "print(json.dumps(answers()))"
    )
    given: dict[str, dict[str, dict[str, Any]]] = {}
    for name, zone in MACHINES.items():
        environment = {key: value for key, value in os.environ.items() if key != "TZ"}
        if zone is not None:
            environment["TZ"] = zone
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment | {"LANGUAGE": "en"},
            capture_output=True,
            text=True,
            check=True,
        )
        given[name] = json.loads(done.stdout)
    return given


@each_case
@pytest.mark.parametrize("machine", MACHINES)
def test_schedule_posting_times_and_what_is_shown(
    machines: dict[str, dict[str, dict[str, Any]]], machine: str, case: Case
) -> None:
    expected = {"at": case.at} if case.at else {"code": case.code, "choices": [*case.choices]}
    assert machines[machine][case.name] == {
        "scheduled": expected,
        "posted": [case.posted],
        "seen": case.seen,
    }


@pytest.fixture(params=["America/St_Johns", "Nowhere/At_All"])
def another_machine(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """This process is elsewhere, as far as its C library knows."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        wall_clock.tzset()
        yield
    wall_clock.tzset()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_files(
    another_machine: None,
    importing: Importing,
    faults: Callable[..., list[tuple[int, str, str]]],
    form: str,
) -> None:
    rows = [
        {"ref": case.name, "text": case.name, "publish_at": case.wall, "zone": case.zone}
        for case in CASES
    ]
    if form == "jsonl":
        report = importing.rows(*rows, skip_bad=True)
    else:
        columns = ["ref", "channel", "text", "publish_at", "zone"]
        lines = [[{"channel": "Page A", **row}[name] for name in columns] for row in rows]
        written = "\n".join(",".join(f'"{cell}"' for cell in line) for line in [columns, *lines])
        report = importing.file(f"{written}\n", skip_bad=True)
    first = 2 if form == "csv" else 1  # a CSV has its columns' names before
    wrong = [
        (number, "publish_at", case.code) for number, case in enumerate(CASES, first) if case.code
    ]
    assert faults(report) == wrong
    fixes = {row.ref: [fault.fix for fault in row.faults] for row in report.rows}
    stored = importing.all(
        "SELECT p.ref, c.publish_at, c.zone, j.due_at FROM posts p"
        " JOIN post_channels c ON c.post_id = p.id JOIN jobs j ON j.post_id = p.id"
    )
    assert {(row.ref, row.publish_at, row.zone) for row in stored} == {
        (case.name, instant(case.at), case.zone) for case in CASES if case.at
    }
    assert all(row.due_at == row.publish_at for row in stored)
    for case in CASES:
        assert bool(fixes[case.name]) is bool(case.code)
        # Both choices are in the words, as a clock there shows them.
        local = [instant(at).astimezone(ZoneInfo(case.zone)) for at in case.choices]
        assert all(f"{at:%H:%M}" in fixes[case.name][0] for at in local)


def test_a_choice_that_is_taken_is_read(importing: Importing) -> None:
    """What a page offers as buttons, and a file as words, is accepted when it is given back."""
    for case in CASES:
        for at in case.choices:
            written = instant(at).astimezone(ZoneInfo(case.zone)).isoformat(sep=" ")
            moment = times.read(written, case.zone, now=NOW, useful_for=timedelta(days=1))
            assert moment.at == instant(at)
