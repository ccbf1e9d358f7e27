"""Weekly posting times: how they are written, when they are, and which is free for whom."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, time, timedelta
from threading import Barrier
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from publisher.db.connect import Database
from publisher.editorial import channel_events, posting_times, posts, times
from publisher.editorial.channel_events import Event
from publisher.editorial.posting_times import AHEAD, NoFreeTime, PostingTime, PostingTimeRefused
from publisher.editorial.posts import Destination, Draft
from publisher.engine import ledger
from publisher.engine.content import Post
from publisher.engine.errors import Conflict, NotFound
from publisher.engine.job import Channel, Hold
from publisher.engine.registry import Registry

Pages = tuple[Channel, Channel]
NINE, NOON = time(9), time(12)
HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(weeks=1)
ZONE = ZoneInfo("Asia/Ho_Chi_Minh")


@pytest.mark.parametrize(
    ("written", "days", "at"),
    [
        ("mon 09:00", [1], NINE),
        ("Monday  9:00", [1], NINE),
        (" SUN 12:00 ", [7], NOON),
        ("tues 09:00", [2], NINE),
        ("daily 09:00", [1, 2, 3, 4, 5, 6, 7], NINE),
        ("weekdays 09:00", [1, 2, 3, 4, 5], NINE),
        ("weekend 12:00", [6, 7], NOON),
        ("wed ۰۹:۰۰", [3], NINE),
        ("thu 23:59", [4], time(23, 59)),
    ],
)
def test_as_they_are_written(written: str, days: list[int], at: time) -> None:
    assert posting_times.read(written) == tuple(PostingTime(day, at) for day in days)


@pytest.mark.parametrize(
    "written",
    ["", "mon", "09:00", "mo 09:00", "moon 09:00", "monn 09:00", "mon 24:00", "mon 09:60",
     "mon 9", "mon 09:00:30", "mon 09:00 tue", "mon,09:00", "yesterday 09:00"],
)  # fmt: skip
def test_what_is_none(written: str) -> None:
    with pytest.raises(PostingTimeRefused, match="Write it as mon 09:00"):
        posting_times.read(written)


def test_two_that_a_gap_brings_together_are_one() -> None:
    weekly = [PostingTime(7, time(2, 30)), PostingTime(7, time(3, 30))]
    new_york = ZoneInfo("America/New_York")
    start = datetime(2027, 3, 14, tzinfo=UTC)
    found = [*posting_times.occurrences(weekly, new_york, start, start + DAY)]
    assert found == [datetime(2027, 3, 14, 7, 30, tzinfo=UTC)]


def test_a_day_that_is_left_out_has_its_times_on_the_next() -> None:
    weekly = [PostingTime(5, NINE), PostingTime(6, time(8))]
    start = datetime(2011, 12, 29, 12, tzinfo=UTC)
    apia = ZoneInfo("Pacific/Apia")
    found = [*posting_times.occurrences(weekly, apia, start, start + 2 * DAY)]
    local = [at.astimezone(apia).replace(tzinfo=None).isoformat() for at in found]
    assert local == ["2011-12-31T08:00:00", "2011-12-31T09:00:00"]


minutes = st.builds(time, st.integers(0, 23), st.integers(0, 59))
weekly_times = st.lists(
    st.builds(PostingTime, st.integers(1, 7), minutes), min_size=1, max_size=4, unique=True
)


@settings(deadline=None)
@given(
    weekly_times,
    st.sampled_from(sorted(times.zones())),
    st.datetimes(datetime(2026, 1, 1), datetime(2036, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_every_week_has_each_of_them_in_order(
    weekly: list[PostingTime], zone: str, start: datetime
) -> None:
    place = ZoneInfo(zone)
    found = [*posting_times.occurrences(weekly, place, start, start + 2 * WEEK)]
    assert found == sorted(set(found))
    assert all(start < at <= start + 2 * WEEK for at in found)
    # A day that is moved by a gap may leave the fortnight, or bring two together.
    assert abs(len(found) - 2 * len(weekly)) <= len(weekly)
    for at in found:
        local = at.astimezone(place).replace(tzinfo=None)
        walls = [
            datetime.combine(local.date() - timedelta(days=back), each.at)
            for back in (0, 1)
            for each in weekly
            if each.weekday == (local.date() - timedelta(days=back)).isoweekday()
        ]
        assert any(posting_times.instant(wall, place) == at for wall in walls)
    # Asked for in two parts it is the same.
    middle = start + WEEK
    halves = [
        *posting_times.occurrences(weekly, place, start, middle),
        *posting_times.occurrences(weekly, place, middle, start + 2 * WEEK),
    ]
    assert halves == found


# A channel's own


@pytest.fixture
def page(app_database: Database, owner_database: Database, pages: Pages) -> Channel:
    """With a time every hour of every day, in Ho Chi Minh City."""
    with owner_database.engine.begin() as conn:
        conn.execute(text("UPDATE workspaces SET zone = :zone"), {"zone": ZONE.key})
    with app_database.engine.begin() as conn:
        hourly = [PostingTime(day, time(hour)) for day in range(1, 8) for hour in range(24)]
        assert posting_times.add(conn, pages[0].id, hourly, who="p") == 168
    return pages[0]


@contextmanager
def transaction(database: Database) -> Iterator[Connection]:
    with database.engine.begin() as conn:
        yield conn


def next_hour(number: int = 1) -> datetime:
    now = datetime.now(UTC)
    return now.replace(minute=0, second=0, microsecond=0) + number * HOUR


def spaced(database: Database, page: Channel, by: timedelta) -> None:
    with database.engine.begin() as conn:
        ledger.set_rules(conn, page.id, spacing=by)


def scheduled(
    database: Database, registry: Registry, page: Channel, at: datetime, **more: datetime
) -> int:
    """The job of a post at that time."""
    with database.engine.begin() as conn:
        place = Destination(page.id, at, "UTC", **more)
        (version,) = posts.create(conn, [Draft(Post("Hello").to_json(), (place,))], who="p")
        assert version is not None
        posts.approve(conn, [version], who="p")
        (job,) = posts.schedule(conn, [version], useful_for=DAY, registry=registry)
    return job.job_id


def free(database: Database, page: Channel, at_most: int = 1, **how: datetime) -> list[datetime]:
    with database.engine.begin() as conn:
        return [*posting_times.free(conn, page.id, at_most=at_most, **how)]


def test_added_listed_removed_and_told(app_database: Database, pages: Pages) -> None:
    page, other = pages
    monday, friday = PostingTime(1, NINE), PostingTime(5, NOON)
    with transaction(app_database) as conn:
        assert posting_times.add(conn, page.id, [], who="p") == 0
        assert posting_times.add(conn, page.id, [friday, monday, monday], who="p") == 2
        assert posting_times.add(conn, page.id, [monday], who="p") == 0
        assert posting_times.of_channel(conn, page.id) == (monday, friday)
        assert [str(at) for at in (monday, friday)] == ["Mon 09:00", "Fri 12:00"]
        assert posting_times.of_channel(conn, other.id) == ()
        assert posting_times.remove(conn, other.id, [monday], who="p") == 0
        assert posting_times.remove(conn, page.id, [monday, PostingTime(2, NINE)], who="p") == 1
        assert posting_times.of_channel(conn, page.id) == (friday,)
        events = channel_events.of_channel(conn, page.id)
    told = [(event.event, event.detail) for event in events if event.event != Event.ADDED]
    assert told == [
        (Event.POSTING_TIMES_ADDED, {"times": ["mon 09:00", "fri 12:00"]}),
        (Event.POSTING_TIMES_REMOVED, {"times": ["mon 09:00"]}),
    ]


@pytest.mark.parametrize(
    ("column", "value"),
    [("weekday", "0"), ("weekday", "8"), ("at", "'24:00'"), ("at", "'09:00:30'"),
     ("at", "'09:00:00.5'"), ("added_by", "''"), ("channel_id", "99")],
)  # fmt: skip
def test_what_the_database_refuses(
    app_database: Database, pages: Pages, column: str, value: str
) -> None:
    values = {"channel_id": str(pages[0].id), "weekday": "1", "at": "'09:00'", "added_by": "'p'"}
    values[column] = value
    statement = (
        f"INSERT INTO posting_times ({', '.join(values)}) VALUES ({', '.join(values.values())})"
    )
    with pytest.raises(Exception, match="posting_times"), transaction(app_database) as conn:
        conn.execute(text(statement))


def test_the_next_hour_is_free_in_the_workspaces_zone(
    app_database: Database, page: Channel
) -> None:
    assert free(app_database, page, 3) == [next_hour(1), next_hour(2), next_hour(3)]
    later = next_hour(5)
    assert free(app_database, page, after=later) == [later + HOUR]
    assert free(app_database, page, after=later - timedelta(seconds=1)) == [later]
    assert free(app_database, page, after=next_hour(-5)) == [next_hour()]
    with transaction(app_database) as conn:
        assert posting_times.zone_of(conn, page.id).key == ZONE.key
        with pytest.raises(NotFound):
            posting_times.zone_of(conn, 99)


def test_no_further_than_some_weeks(app_database: Database, page: Channel) -> None:
    assert free(app_database, page, after=next_hour() + AHEAD) == []
    with transaction(app_database) as conn, pytest.raises(NoFreeTime) as caught:
        posting_times.take(conn, page.id, who="p", after=next_hour() + AHEAD)
    assert caught.value.code == "no-free-time"


def test_a_channel_without_posting_times_has_none_free(
    app_database: Database, pages: Pages
) -> None:
    assert free(app_database, pages[1]) == []
    with transaction(app_database) as conn, pytest.raises(NoFreeTime) as caught:
        posting_times.take(conn, pages[1].id, who="p")
    assert caught.value.code == "no-posting-times"
    assert "publisher channels posting-times" in str(caught.value)


@pytest.mark.parametrize(
    ("spacing", "minutes", "next_free"),
    [
        (timedelta(0), 0, 2),  # at that time
        (timedelta(0), 1, 1),
        (30 * timedelta(minutes=1), 29, 2),
        (30 * timedelta(minutes=1), -29, 2),
        (30 * timedelta(minutes=1), 30, 1),
        (30 * timedelta(minutes=1), -30, 1),
        (90 * timedelta(minutes=1), 0, 3),
    ],
)
def test_what_is_scheduled_takes_its_time_and_what_is_near(
    app_database: Database,
    registry: Registry,
    page: Channel,
    spacing: timedelta,
    minutes: int,
    next_free: int,
) -> None:
    base = 3
    spaced(app_database, page, spacing)
    due = next_hour(base) + timedelta(minutes=minutes)
    scheduled(app_database, registry, page, due)
    after = next_hour(base) - timedelta(seconds=1)
    assert free(app_database, page, after=after) == [next_hour(base - 1 + next_free)]


@pytest.mark.parametrize(
    ("state", "is_free"),
    [
        ("scheduled", False), ("claimed", False), ("sending", False), ("published", False),
        ("unknown", False), ("failed", True), ("missed", True), ("cancelled", True),
        ("dropped", True),
    ],
)  # fmt: skip
def test_by_its_state(
    app_database: Database,
    owner_database: Database,
    registry: Registry,
    page: Channel,
    state: str,
    *,
    is_free: bool,
) -> None:
    job_id = scheduled(app_database, registry, page, next_hour(2))
    held = state in {"claimed", "sending"}
    with owner_database.engine.begin() as conn:
        conn.execute(text("ALTER TABLE jobs DISABLE TRIGGER USER"))
        conn.execute(
            text(
                "UPDATE jobs SET state = :state, attested_at = CASE WHEN :state = 'published'"
                " THEN now() END, token = CASE WHEN :held THEN gen_random_uuid() END,"
                " incarnation = CASE WHEN :held THEN 1 END,"
                " claimed_at = CASE WHEN :held THEN now() END,"
                " lease_until = CASE WHEN :held THEN now() END WHERE id = :id"
            ),
            {"state": state, "held": held, "id": job_id},
        )
        conn.execute(text("ALTER TABLE jobs ENABLE TRIGGER USER"))
    found = free(app_database, page, 2)
    assert found == [next_hour(1), next_hour(2) if is_free else next_hour(3)]


def test_another_channels_posts_are_in_nobodys_way(
    app_database: Database, registry: Registry, page: Channel, pages: Pages
) -> None:
    scheduled(app_database, registry, pages[1], next_hour())
    assert free(app_database, page) == [next_hour()]


def test_a_channel_that_rests_has_nothing_free_before(
    app_database: Database, page: Channel
) -> None:
    with transaction(app_database) as conn:
        rest = {"at": next_hour(2), "id": page.id}
        conn.execute(text("UPDATE gates SET not_before = :at WHERE channel_id = :id"), rest)
    assert free(app_database, page) == [next_hour(2)]


# Taken


def take(database: Database, page: Channel, **how: timedelta) -> datetime:
    with database.engine.begin() as conn:
        return posting_times.take(conn, page.id, who="p", **how).at  # type: ignore[arg-type]


def test_what_is_taken_is_not_free_until_it_is_given_back(
    app_database: Database, page: Channel
) -> None:
    assert take(app_database, page) == next_hour()
    assert take(app_database, page) == next_hour(2)
    assert free(app_database, page) == [next_hour(3)]
    with transaction(app_database) as conn:
        assert posting_times.give_back(conn, page.id, next_hour())
        assert not posting_times.give_back(conn, page.id, next_hour())
    assert free(app_database, page, 2) == [next_hour(), next_hour(3)]


def test_what_is_taken_takes_what_is_near(app_database: Database, page: Channel) -> None:
    spaced(app_database, page, 90 * timedelta(minutes=1))
    assert [take(app_database, page) for _ in range(3)] == [
        next_hour(1), next_hour(3), next_hour(5),
    ]  # fmt: skip


def test_a_taking_lapses(app_database: Database, page: Channel) -> None:
    assert take(app_database, page, keep_for=timedelta(0)) == next_hour()
    assert free(app_database, page) == [next_hour()]
    assert take(app_database, page) == next_hour()
    with transaction(app_database) as conn:
        taken = posting_times.take(conn, page.id, who="p")
    assert timedelta(minutes=59) < taken.lapses_at - datetime.now(UTC) <= HOUR


def test_a_taking_that_is_rolled_back_is_none(app_database: Database, page: Channel) -> None:
    with app_database.engine.connect() as conn, conn.begin() as undone:
        assert posting_times.take(conn, page.id, who="p").at == next_hour()
        undone.rollback()
    assert take(app_database, page) == next_hour()


@pytest.mark.parametrize("spacing", [timedelta(0), 90 * timedelta(minutes=1)])
def test_of_many_who_ask_at_once_each_gets_another(
    app_database: Database, page: Channel, spacing: timedelta
) -> None:
    spaced(app_database, page, spacing)
    askers = 8
    gate = Barrier(askers)

    def ask(_: int) -> datetime:
        gate.wait(30)
        return take(app_database, page)

    with ThreadPoolExecutor(askers) as pool:
        found = sorted(pool.map(ask, range(askers)))
    step = 1 if not spacing else 2
    assert found == [next_hour(1 + n * step) for n in range(askers)]


def test_the_database_refuses_two_within_the_spacing(
    app_database: Database, page: Channel, pages: Pages
) -> None:
    insert = text(
        "INSERT INTO taken_times (channel_id, during, taken_by, lapses_at)"
        " VALUES (:channel, tstzrange(:since, :until), 'p', now())"
    )
    hours = [next_hour(number) for number in range(4)]
    with transaction(app_database) as conn:
        conn.execute(insert, {"channel": page.id, "since": hours[0], "until": hours[2]})
        conn.execute(insert, {"channel": page.id, "since": hours[2], "until": hours[3]})
        conn.execute(insert, {"channel": pages[1].id, "since": hours[0], "until": hours[2]})
    with pytest.raises(IntegrityError, match="taken_times_once"), transaction(app_database) as conn:
        conn.execute(insert, {"channel": page.id, "since": hours[1], "until": hours[3]})


@pytest.mark.parametrize(
    ("during", "who"),
    [
        ("empty", "p"),
        ("(,2026-12-08)", "p"),
        ("[2026-12-07,)", "p"),
        ("[2026-12-07,2026-12-08)", ""),
    ],
)
def test_a_taking_begins_and_ends_and_is_somebodys(
    app_database: Database, pages: Pages, during: str, who: str
) -> None:
    insert = text(
        "INSERT INTO taken_times (channel_id, during, taken_by, lapses_at)"
        " VALUES (:channel, CAST(:during AS tstzrange), :who, now())"
    )
    given = {"channel": pages[0].id, "during": during, "who": who}
    with pytest.raises(IntegrityError, match="taken_times_"), transaction(app_database) as conn:
        conn.execute(insert, given)


def test_whoever_would_wait_too_long_is_told(app_database: Database, page: Channel) -> None:
    with transaction(app_database) as first:
        posting_times.take(first, page.id, who="p")
        with transaction(app_database) as second:
            second.execute(text("SET LOCAL lock_timeout = '50ms'"))
            with pytest.raises(Conflict) as caught:
                posting_times.take(second, page.id, who="q")
            assert caught.value.code == "times-busy"
            assert second.scalar(text("SELECT 1")) == 1


# How long a post is useful


@pytest.mark.parametrize(
    ("own", "own_until", "expected"),
    [(None, None, DAY), (2 * HOUR, None, 2 * HOUR), (2 * HOUR, 3 * HOUR, 3 * HOUR)],
)
def test_useful_until_by_post_by_channel_or_as_usual(
    app_database: Database,
    registry: Registry,
    page: Channel,
    own: timedelta | None,
    own_until: timedelta | None,
    expected: timedelta,
) -> None:
    due = next_hour()
    with transaction(app_database) as conn:
        ledger.set_rules(conn, page.id, useful_for=own)
    more = {} if own_until is None else {"useful_until": due + own_until}
    job_id = scheduled(app_database, registry, page, due, **more)
    with transaction(app_database) as conn:
        useful_until = conn.scalar(
            text("SELECT useful_until FROM jobs WHERE id = :id"), {"id": job_id}
        )
    assert useful_until == due + expected


def test_useful_only_after_its_time(
    app_database: Database, registry: Registry, page: Channel
) -> None:
    due = next_hour()
    with pytest.raises(IntegrityError, match="useful_after_its_time"):
        scheduled(app_database, registry, page, due, useful_until=due)


# A backlog, and an edit of what is in it


def test_what_waits_its_turn_is_not_let_go_in_a_version_that_is_not_approved(
    app_database: Database, database: Database, registry: Registry, page: Channel
) -> None:
    due = datetime.now(UTC) - 2 * HOUR
    jobs = [scheduled(app_database, registry, page, due + n * timedelta(minutes=1)) for n in (0, 1)]
    with transaction(app_database) as conn:
        conn.execute(text("UPDATE gates SET backlog_before = clock_timestamp()"))
    with database.connect_driver() as worker:
        assert ledger.sort_backlog(worker, who="w") == 2
        with transaction(app_database) as conn:
            post = conn.scalar(text("SELECT post_id FROM jobs WHERE id = :id"), {"id": jobs[0]})
            assert post is not None
            posts.revise(conn, post, Post("Hello again").to_json(), who="p")
        assert ledger.release_backlog(worker, who="w") == frozenset()
        assert ledger.release_backlog(worker, who="w") == {jobs[1]}
    with transaction(app_database) as conn:
        held = conn.scalar(text("SELECT hold_reason FROM jobs WHERE id = :id"), {"id": jobs[0]})
        events = conn.scalars(
            text("SELECT event FROM job_events WHERE job_id = :id ORDER BY id"), {"id": jobs[0]}
        ).all()
    assert held == Hold.EDITED
    assert events == ["hold", "hold"]
