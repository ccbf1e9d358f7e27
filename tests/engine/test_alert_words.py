"""Every alert to the letter: what is the matter, what happens by itself, whether to get up."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from publisher.engine.alert import Incident, Matter, Message, Urgency, Wording, channel_name
from publisher.engine.job import JobId, public_id

Inc, U = Incident, Urgency
NOW = datetime(2026, 12, 7, 12, 30, tzinfo=UTC)
JOB = JobId(518)
NAME = public_id(JOB)
MATTER = Matter(Inc.DOUBT, 'Fake "page" (1)', NOW, NOW - timedelta(minutes=5), (JOB,))
WORDING = Wording()
WAITS = "CAN WAIT until 08:00"
SENDS_NOTHING = "Nothing will be sent by itself."
TWICE = "The platform took it all the same. Look whether it is there only once."
LOOK_FIRST = "Look at the page for the earlier text. Not there: release it. There: cancel it."
LOOKED_FOR = (
    "What was due is looked for on its page before it is sent. What can neither be found nor ruled"
    " out waits for you."
)

# incident, one: what is the matter, what happens by itself, the third line, the command.
ONE: list[tuple[Incident, str, str, str, str]] = [
    (Inc.DOUBT, "1 post may be live", f"{SENDS_NOTHING} Other posts there go on.", WAITS,
     f"publisher unknowns show {NAME}"),
    (Inc.LIVE, "1 post is live against our record", TWICE, WAITS, f"publisher jobs show {NAME}"),
    (Inc.REPLACED, "1 post waits, for the one before it may be live",
     f"{SENDS_NOTHING} {LOOK_FIRST}", WAITS, f"publisher jobs show {NAME}"),
    (Inc.ORPHAN, "A send that the database does not know",
     f"It was under way when the database lost its record. {SENDS_NOTHING}", WAITS,
     f"publisher unknowns show {NAME}"),
    (Inc.PARKED, "The end of 1 post could not be recorded",
     f"{SENDS_NOTHING} What the platform said is in the log and in the second record on disk.",
     WAITS, f"publisher jobs show {NAME}"),
    (Inc.BLOCKED, "Needs reconnecting", "Nothing waits for it at present.", WAITS,
     "publisher channels reconnect 7"),
    (Inc.SILENT, "A worker is silent", "What it was sending stays locked. No other worker runs.",
     "WAKE: nothing is sent until a worker runs", "publisher workers list"),
    (Inc.QUARANTINE, "The database may lack posts that were sent", LOOKED_FOR,
     "WAKE: what was due waits for it", "publisher quarantine status"),
    (Inc.AUDIT, "The journal contradicts itself",
     "Nothing was changed. The audit names the rows and says what to do.", WAITS,
     "publisher audit"),
]  # fmt: skip
PAGES = {
    Inc.DOUBT: f"jobs/{NAME}", Inc.LIVE: f"jobs/{NAME}", Inc.ORPHAN: f"jobs/{NAME}",
    Inc.PARKED: f"jobs/{NAME}", Inc.BLOCKED: "channels/7", Inc.SILENT: "workers",
    Inc.QUARANTINE: "quarantine", Inc.AUDIT: "audit", Inc.REPLACED: f"jobs/{NAME}",
}  # fmt: skip


def matter(incident: Incident, **changes: object) -> Matter:
    return replace(MATTER, incident=incident, channel_id=7, **changes)  # type: ignore[arg-type]


def lines(of: Matter, wording: Wording = WORDING) -> list[str]:
    return wording.message(of).text.splitlines()


@pytest.mark.parametrize(("incident", "what", "by_itself", "why", "command"), ONE)
def test_each_incident_to_the_letter(
    incident: Incident, what: str, by_itself: str, why: str, command: str
) -> None:
    head = f'{what} · Fake "page" (1) · since 12:25 (5 min)'
    urgency = U.WAKE if why.startswith("WAKE") else U.CAN_WAIT
    assert WORDING.message(matter(incident)) == Message(
        urgency, f"{urgency}: {head}",
        f"{head}\n{by_itself}\n{why}   {command}\nTimes: UTC\n",
        command, datetime(2026, 12, 8, 8, tzinfo=UTC),
    )  # fmt: skip


def test_there_is_a_row_for_every_incident() -> None:
    assert sorted(row[0] for row in ONE) == sorted(Incident)


@pytest.mark.parametrize("incident", Incident)
def test_each_links_to_its_page(incident: Incident) -> None:
    wording = Wording(public_url="https://publisher.example/")
    assert wording.message(matter(incident)).link == f"https://publisher.example/{PAGES[incident]}"
    assert Wording(public_url="https://x").message(matter(incident)).link == (
        f"https://x/{PAGES[incident]}"
    )


SEVERAL = (JOB, JobId(519))


@pytest.mark.parametrize(
    ("incident", "what"),
    [
        (Inc.DOUBT, "2 posts may be live"),
        (Inc.LIVE, "2 posts are live against our record"),
        (Inc.PARKED, "The ends of 2 posts could not be recorded"),
        (Inc.ORPHAN, "A send that the database does not know"),
    ],
)
def test_several_are_one_message_and_one_list(incident: Incident, what: str) -> None:
    message = WORDING.message(matter(incident, jobs=SEVERAL))
    assert message.subject == f'CAN WAIT: {what} · Fake "page" (1) · since 12:25 (5 min)'
    assert message.link == "publisher unknowns list"
    wording = Wording(public_url="https://x")
    assert wording.message(matter(incident, jobs=SEVERAL)).link == "https://x/unknowns"
    assert wording.message(matter(incident, jobs=())).link == "https://x/unknowns"


def test_several_that_wait_are_among_the_jobs() -> None:
    several = matter(Inc.REPLACED, jobs=SEVERAL)
    message = WORDING.message(several)
    assert message.subject.startswith(
        "CAN WAIT: 2 posts wait, for the ones before them may be live · "
    )
    assert message.link == "publisher jobs list"
    assert Wording(public_url="https://x").message(several).link == "https://x/jobs"


def test_mails_are_delivered_and_are_no_posts() -> None:
    for jobs, number in ((SEVERAL[:1], 1), (SEVERAL, 2)):
        (head, *_) = lines(matter(Inc.DOUBT, jobs=jobs, are_posts=False))
        assert head.startswith(f"{number} may have been delivered · ")


# What waits


def test_what_a_blocked_channel_keeps_waiting() -> None:
    until = NOW + timedelta(hours=3)
    said = [
        lines(matter(Inc.BLOCKED, waiting=waiting, useful_until=end))[1]
        for waiting, end in ((1, None), (2, None), (1, until), (6, until))
    ]
    assert said == [
        "1 post waits and was not sent.",
        "2 posts wait and were not sent.",
        "1 post waits and was not sent; the first is missed at 15:30.",
        "6 posts wait and were not sent; the first is missed at 15:30.",
    ]


def test_what_goes_on_beside_a_silent_worker() -> None:
    stays = "What it was sending stays locked until it is proved stopped."
    for waiting, goes_on in ((1, "1 other worker goes on."), (2, "2 other workers go on.")):
        found = lines(matter(Inc.SILENT, waiting=waiting))
        assert found[1] == f"{stays} {goes_on}"
        assert found[2] == f"{WAITS}   publisher workers list"


# Whether to get up


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"incident": Inc.AUDIT, "where": "D2"}, "WAKE: something may be sent twice"),
        ({"incident": Inc.AUDIT, "where": "A1 D"}, WAITS),
        ({"jobs": tuple(JobId(n) for n in range(1, 11))}, "WAKE: 10 in one message"),
        ({"jobs": tuple(JobId(n) for n in range(1, 10))}, WAITS),
        ({"incident": Inc.BLOCKED, "waiting": 0}, WAITS),
    ],
)
def test_somebody_is_woken_whatever_the_hour(changes: dict[str, object], why: str) -> None:
    found = lines(replace(MATTER, channel_id=7, **changes))  # type: ignore[arg-type]
    assert found[2].partition("   ")[0] == why


def test_the_rate_is_the_deployments() -> None:
    few = matter(Inc.DOUBT, jobs=SEVERAL)
    assert WORDING.message(few).urgency is U.CAN_WAIT
    assert Wording(rate=2).message(few).urgency is U.WAKE


@pytest.mark.parametrize(
    ("until", "why"),
    [
        (timedelta(seconds=-1), f"{WAITS} (useful until 12:29, now over)"),
        (timedelta(0), f"{WAITS} (useful until 12:30, now over)"),
        (timedelta(seconds=60), "WAKE: useful until 12:31, before the hand-over at 08:00"),
        (timedelta(hours=19.5), f"{WAITS} (useful until 08:00)"),
        (timedelta(days=2), f"{WAITS} (useful until Wed 9 Dec 12:30)"),
        (None, WAITS),
    ],
)
def test_until_when_it_is_of_use(until: timedelta | None, why: str) -> None:
    at = None if until is None else NOW + until
    assert lines(matter(Inc.DOUBT, useful_until=at))[2].partition("   ")[0] == why


# Times


def test_the_hand_over_is_the_next_of_its_hour_in_its_zone() -> None:
    wording = Wording(zone="Asia/Ho_Chi_Minh", handover_hour=8)
    for now, then in (
        (datetime(2026, 12, 7, 0, 59, tzinfo=UTC), datetime(2026, 12, 7, 1, tzinfo=UTC)),
        (datetime(2026, 12, 7, 1, 0, tzinfo=UTC), datetime(2026, 12, 8, 1, tzinfo=UTC)),
        (datetime(2026, 12, 7, 23, 0, tzinfo=UTC), datetime(2026, 12, 8, 1, tzinfo=UTC)),
    ):
        assert wording.handover_after(now) == then
    assert lines(MATTER, wording)[3] == "Times: Ho Chi Minh"
    assert lines(MATTER, wording)[0].endswith("since 19:25 (5 min)")


@pytest.mark.parametrize(
    ("ago", "said"),
    [
        (timedelta(seconds=-30), "(0 min)"),
        (timedelta(seconds=59), "(0 min)"),
        (timedelta(seconds=60), "(1 min)"),
        (timedelta(minutes=59, seconds=59), "(59 min)"),
        (timedelta(minutes=60), "(1 h)"),
        (timedelta(hours=47, minutes=59), "(47 h)"),
        (timedelta(hours=48), "(2 days)"),
        (timedelta(hours=73), "(3 days)"),
    ],
)
def test_how_long_ago_it_was(ago: timedelta, said: str) -> None:
    (head, *_) = lines(replace(MATTER, since=NOW - ago))
    assert head.endswith(said)


@pytest.mark.parametrize(
    ("since", "said"),
    [
        (NOW - timedelta(hours=12), "00:30"),
        (NOW - timedelta(hours=13), "Sun 6 Dec 23:30"),
        (NOW + timedelta(hours=11), "23:30"),
        (NOW + timedelta(hours=19, minutes=59), "08:29"),
        (NOW + timedelta(hours=20), "Tue 8 Dec 08:30"),
    ],
)
def test_a_time_of_another_day_is_shown_with_it(since: datetime, said: str) -> None:
    (head, *_) = lines(replace(MATTER, since=since))
    assert f" · since {said} (" in head


def test_a_channel_is_named_with_as_much_of_its_id_as_fits() -> None:
    assert channel_name("facebook_pages", "News", "1" * 24) == f'Facebook "News" ({"1" * 24})'
    assert channel_name("telegram", "News", "1" * 20 + "23456") == 'Telegram "News" (…123456)'


def test_a_path_of_the_public_address_is_kept_to_its_last_letter() -> None:
    link = Wording(public_url="https://x/QUEUEX/").message(matter(next(iter(Incident)))).link
    assert link is not None
    assert link.startswith("https://x/QUEUEX/")
