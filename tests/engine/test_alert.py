"""The words of an alert, and whether it may wait."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.engine.alert import (
    Incident,
    Matter,
    Urgency,
    Wording,
    channel_name,
)
from publisher.engine.job import JobId, public_id

ZONE = ZoneInfo("Asia/Ho_Chi_Minh")
PAGE = channel_name("facebook_pages", "Bản tin Mẫu", "101")


def at(clock: str, day: int = 7) -> datetime:
    hour, minute = map(int, clock.split(":"))
    return datetime(2026, 12, day, hour, minute, tzinfo=ZONE)


WORDING = Wording(zone="Asia/Ho_Chi_Minh", public_url="https://publisher.example/")
JOB = JobId(518)
DOUBT = Matter(
    Incident.DOUBT, PAGE, at("02:03"), at("02:00"), (JOB,), channel_id=7, useful_until=at("12:00")
)


def test_as_the_operator_reads_it_at_three_in_the_morning() -> None:
    message = WORDING.message(DOUBT)
    link = f"https://publisher.example/jobs/{public_id(JOB)}"
    assert message.urgency is Urgency.CAN_WAIT
    assert message.text.splitlines() == [
        '1 post may be live · Facebook "Bản tin Mẫu" (101) · since 02:00 (3 min)',
        "Nothing will be sent by itself. Other posts there go on.",
        f"CAN WAIT until 08:00 (useful until 12:00)   {link}",
        "Times: Ho Chi Minh",
    ]
    assert message.subject.startswith("CAN WAIT: 1 post may be live")
    assert message.wait_until == at("08:00")


def test_wake_when_usefulness_ends_before_the_hand_over() -> None:
    message = WORDING.message(replace(DOUBT, useful_until=at("06:00")))
    assert message.urgency is Urgency.WAKE
    assert "WAKE: useful until 06:00, before the hand-over at 08:00" in message.text
    assert message.subject.startswith("WAKE: ")


@pytest.mark.parametrize("until", [None, at("08:00"), at("01:00")])
def test_no_use_in_waking_anybody(until: datetime | None) -> None:
    assert WORDING.message(replace(DOUBT, useful_until=until)).urgency is Urgency.CAN_WAIT


def test_wake_for_a_rate_of_doubts() -> None:
    many = replace(DOUBT, jobs=tuple(JobId(number) for number in range(1, 11)))
    message = WORDING.message(many)
    assert message.urgency is Urgency.WAKE
    assert message.text.startswith("10 posts may be live")
    assert message.text.splitlines()[2].endswith("https://publisher.example/unknowns")


def test_without_an_address_the_command_is_named() -> None:
    message = Wording().message(DOUBT)
    assert message.link == f"publisher unknowns show {public_id(JOB)}"
    assert "Times: UTC" in message.text


def test_a_blocked_channel_says_what_waits() -> None:
    blocked = Matter(
        Incident.BLOCKED, PAGE, at("02:03"), at("02:00"), channel_id=7, waiting=6,
        useful_until=at("08:00", day=8),
    )  # fmt: skip
    lines = WORDING.message(blocked).text.splitlines()
    assert lines[0].startswith("Needs reconnecting · Facebook")
    assert lines[1] == "6 posts wait and were not sent; the first is missed at Tue 8 Dec 08:00."
    assert lines[2].endswith("https://publisher.example/channels/7")
    assert WORDING.message(replace(blocked, useful_until=at("04:00"))).urgency is Urgency.WAKE
    idle = WORDING.message(replace(blocked, waiting=0, useful_until=None))
    assert "Nothing waits" in idle.text


def test_a_silent_worker_wakes_when_it_was_the_only_one() -> None:
    silent = Matter(Incident.SILENT, "host a, run 3", at("02:03"), at("02:00"), run=3, waiting=1)
    assert WORDING.message(silent).urgency is Urgency.CAN_WAIT
    alone = WORDING.message(replace(silent, waiting=0))
    assert alone.urgency is Urgency.WAKE
    assert "host a, run 3" in alone.text


@pytest.mark.parametrize("incident", Incident)
def test_every_incident_has_three_lines_and_never_says_retry(incident: Incident) -> None:
    text = WORDING.message(replace(DOUBT, incident=incident, waiting=1)).text
    assert len(text.splitlines()) == 4
    for word in ("retry", "try again", "please", "oops", "failed"):
        assert word not in text.casefold()


def test_a_mail_in_doubt_is_no_post() -> None:
    assert "post may be live" not in WORDING.message(replace(DOUBT, are_posts=False)).subject


instants = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1)).map(  # noqa: DTZ001 - given one
    lambda naive: naive.replace(tzinfo=UTC)
)
zones = st.sampled_from(["UTC", "Asia/Tehran", "America/New_York", "Australia/Lord_Howe"])


@given(instants, zones, st.integers(0, 23), st.integers(-3000, 3000))
def test_wake_exactly_between_now_and_the_hand_over(
    now: datetime, zone: str, hour: int, minutes: int
) -> None:
    wording = Wording(zone=zone, handover_hour=hour)
    until = now + timedelta(minutes=minutes)
    message = wording.message(replace(DOUBT, now=now, since=now, useful_until=until))
    handover = message.wait_until
    assert now < handover <= now + timedelta(hours=25)
    assert handover.astimezone(ZoneInfo(zone)).minute == 0
    assert (message.urgency is Urgency.WAKE) == (now < until < handover)
