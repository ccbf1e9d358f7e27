"""Alerts in the database: once whoever sees it, grouped, and never about themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from publisher.adapters.mail import Mail
from publisher.adapters.webhook import Webhook
from publisher.config import Settings
from publisher.engine import ledger
from publisher.engine.alert import Alert, Incident, Wording
from publisher.engine.alerts import Alerts, by_log
from publisher.engine.content import Happening, Letter
from publisher.engine.errors import PublisherError
from publisher.engine.job import JobId, State, Token, public_id
from publisher.engine.registry import Registry
from publisher.mailer import Mailer
from publisher.transport import Transport
from tests.engine.ground import Ground, Lane, Row

TO = ("ops@example.org", "night@example.org")


def closed(_channel: object) -> str:
    raise PublisherError


def make(lane: Lane, **changes: object) -> Alerts:
    settings = Settings()
    registry = Registry([Mail(Mailer(settings), closed), Webhook(Transport(settings), closed)])
    return Alerts(registry=registry, **changes)  # type: ignore[arg-type]


@pytest.fixture
def told(own_ground: Ground) -> tuple[Alerts, Lane]:
    """Alerts to a mailbox and a webhook, and a lane whose jobs they are about."""
    mail, hook = own_ground.lane(platform="mail"), own_ground.lane(platform="webhook")
    names = own_ground.sql(
        "SELECT id, name FROM channels WHERE id = ANY(%s)", [mail.channel_id, hook.channel_id]
    )
    by_id = {row["id"]: row["name"] for row in names}
    channels = (by_id[mail.channel_id].upper(), str(hook.channel_id), "no such channel")
    return make(mail, channels=channels, to=TO), own_ground.lane()


def raised(ground: Ground) -> list[Row]:
    """Every alert there is, in the order they were made."""
    return ground.sql(
        "SELECT j.*, c.key, c.content, c.platform_key FROM jobs j"
        " JOIN job_contents c ON c.job_id = j.id WHERE c.key LIKE 'alert:%%' ORDER BY j.id"
    )


def doubt(lane: Lane, **changes: object) -> ledger.Doubt:
    """A job that may be live and that nobody can decide by machine."""
    job = lane.put(State.UNKNOWN, **changes)
    lane.ground.sql(
        "UPDATE doubts SET asked_at = clock_timestamp(), asked_reason = 'two candidates'"
        " WHERE job_id = %s",
        job.id,
    )
    (found,) = ledger.doubts(lane.ground.conn, [job.id])
    return found


def letters(ground: Ground) -> list[Letter]:
    return [Letter.from_json(row["content"]) for row in raised(ground) if row["kind"] == "mail"]


def test_a_doubt_is_a_mail_to_each_and_a_webhook(told: tuple[Alerts, Lane]) -> None:
    alerts, lane = told
    one = doubt(lane, useful_until=datetime.now(UTC) + timedelta(days=3))
    alerts.asked(lane.ground.conn, one, "two candidates")
    rows = raised(lane.ground)
    assert sorted(row["kind"] for row in rows) == ["mail", "mail", "webhook"]
    assert all(row["queue"] == row["kind"] for row in rows)
    assert all(row["key"].startswith(f"alert:doubt/channel:{lane.channel_id}/") for row in rows)
    assert {letter.to for letter in letters(lane.ground)} == set(TO)
    (hook,) = (row for row in rows if row["kind"] == "webhook")
    happening = Happening.from_json(hook["content"])
    assert happening.type == "alert.doubt"
    assert happening.data["jobs"] == [public_id(one.job_id)]
    assert happening.data["urgency"] == "CAN WAIT"
    assert hook["platform_key"].startswith("evt_")
    assert "1 post may be live" in letters(lane.ground)[0].subject
    (event,) = [row for row in lane.ground.events(one.job_id) if row["event"] == "alert"]
    assert event["detail"]["alert"].startswith("alert:doubt/")


def test_told_again_it_is_told_once(told: tuple[Alerts, Lane]) -> None:
    alerts, lane = told
    one = doubt(lane)
    for _ in range(3):
        alerts.asked(lane.ground.conn, one, "two candidates")
        alerts.sweep(lane.ground.conn)
    assert len(raised(lane.ground)) == 3


TWENTY = """
import os, sys
from datetime import datetime
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.engine import ledger
from publisher.bootstrap import alerts, describing_registry
job, number = int(sys.argv[1]), int(sys.argv[2])
settings = Settings()
start, go = os.pipe()
children = []
for _ in range(number):
    pid = os.fork()
    if pid:
        children.append(pid)
        continue
    os.close(go)
    with Database.open(settings, Role.ENGINE, application_name="one of twenty") as database:
        conn = database.connect_driver()
        told = alerts(settings, describing_registry(settings))
        (doubt,) = ledger.doubts(conn, [job])
        os.read(start, 1)
        told.asked(conn, doubt, "two candidates")
        told.sweep(conn)
    os._exit(0)
os.close(go)
sys.exit(any(os.waitpid(pid, 0)[1] for pid in children))
"""


def test_twenty_processes_raise_it_once(own_ground: Ground, tmp_path: object) -> None:
    mail, lane = own_ground.lane(platform="mail"), own_ground.lane()
    one = doubt(lane)
    result = subprocess.run(
        [sys.executable, "-c", TWENTY, str(one.job_id), "20"],
        env={
            "PUBLISHER_HOME": str(tmp_path),
            "PUBLISHER_DATABASE_URL": own_ground.server.url(own_ground.name),
            "PUBLISHER_ALERT_CHANNELS": str(mail.channel_id),
            "PUBLISHER_ALERT_TO": "ops@example.org",
        },
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert len(raised(own_ground)) == 1
    told = [row for row in own_ground.events(one.job_id) if row["event"] == "alert"]
    assert len(told) == 1


def test_doubts_of_one_channel_are_one_message(told: tuple[Alerts, Lane]) -> None:
    alerts, lane = told
    other = lane.ground.lane()
    several = [doubt(lane) for _ in range(4)]
    for one in [*several, doubt(other)]:
        alerts.asked(lane.ground.conn, one, "two candidates")
    rows = raised(lane.ground)
    assert len(rows) == 6
    subjects = {letter.subject for letter in letters(lane.ground)}
    assert any("4 posts may be live" in subject for subject in subjects)
    assert any("1 post may be live" in subject for subject in subjects)
    hooks = [json.loads(row["content"])["data"] for row in rows if row["kind"] == "webhook"]
    assert hooks[0]["jobs"] == [public_id(one.job_id) for one in several]
    told_of = [
        row for one in several for row in lane.ground.events(one.job_id) if row["event"] == "alert"
    ]
    assert len({row["detail"]["alert"] for row in told_of}) == 1


def test_what_has_left_is_not_added_to_and_the_next_waits(told: tuple[Alerts, Lane]) -> None:
    alerts, lane = told
    alerts.asked(lane.ground.conn, doubt(lane), "")
    first = raised(lane.ground)
    lane.ground.sql("UPDATE jobs SET run_at = now() - interval '1 s' WHERE id = %s", first[0]["id"])
    claimed = lane.claim(queues=[first[0]["queue"]])
    assert claimed
    alerts.asked(lane.ground.conn, doubt(lane), "")
    alerts.asked(lane.ground.conn, doubt(lane), "")
    second = raised(lane.ground)[3:]
    assert len(second) == 3
    assert all("2 posts" in row["content"] for row in second)
    assert min(row["run_at"] for row in second) >= first[0]["due_at"] + timedelta(minutes=14)
    # Content that was claimed is as it was.
    assert "1 post may" in claimed[0].content


def test_what_wakes_does_not_wait_for_the_next(told: tuple[Alerts, Lane]) -> None:
    alerts, lane = told
    alerts.wording = Wording(handover_hour=(datetime.now(UTC).hour + 4) % 24)
    alerts.asked(lane.ground.conn, doubt(lane), "")
    lane.ground.sql(
        "UPDATE jobs SET run_at = now() - interval '1 s' WHERE queue IN ('mail', 'webhook')"
    )
    assert lane.claim(3, queues=["mail", "webhook"])
    alerts.asked(lane.ground.conn, doubt(lane), "")  # waits a quarter of an hour
    soon = datetime.now(UTC) + timedelta(hours=1)
    alerts.asked(lane.ground.conn, doubt(lane, useful_until=soon), "")
    waking = [row for row in raised(lane.ground) if "WAKE" in row["content"]]
    assert len(waking) == 3
    assert max(row["run_at"] for row in waking) < datetime.now(UTC) + timedelta(seconds=90)


def test_a_sweep_tells_of_what_nobody_told(told: tuple[Alerts, Lane]) -> None:
    alerts, lane = told
    one = doubt(lane)
    lane.ground.sql("UPDATE doubts SET snoozed_until = clock_timestamp() + interval '1 h'")
    alerts.sweep(lane.ground.conn)
    assert raised(lane.ground) == []
    lane.ground.sql("UPDATE doubts SET snoozed_until = clock_timestamp()")
    alerts.sweep(lane.ground.conn)
    alerts.sweep(lane.ground.conn)
    assert len(raised(lane.ground)) == 3
    # Snoozed after it was told of: told of again when that is over.
    lane.ground.sql("UPDATE doubts SET snoozed_until = clock_timestamp()")
    lane.ground.sql("UPDATE jobs SET run_at = now() - interval '1 h' WHERE queue = 'mail'")
    alerts.sweep(lane.ground.conn)
    told_of = [row for row in lane.ground.events(one.job_id) if row["event"] == "alert"]
    assert len(told_of) == 2


def test_a_blocked_channel_is_told_of_once_for_each_time(told: tuple[Alerts, Lane]) -> None:
    alerts, lane = told
    ground = lane.ground
    lane.add(useful_until=datetime.now(UTC) + timedelta(days=2))
    blocked = Alert(Incident.BLOCKED, channel_id=lane.channel_id, detail="needs_reconnecting")
    alerts(ground.conn, blocked)
    assert raised(ground) == []
    for _ in range(2):
        ground.sql(
            "UPDATE gates SET blocked_at = clock_timestamp(), blocked_reason = 'needs_reconnecting'"
            " WHERE channel_id = %s",
            lane.channel_id,
        )
        alerts(ground.conn, blocked)
        alerts.sweep(ground.conn)
    assert len(raised(ground)) == 6
    assert "1 post waits and was not sent" in letters(ground)[0].text


def test_orphans_and_silent_workers_are_swept_up(told: tuple[Alerts, Lane]) -> None:
    alerts, lane = told
    ground = lane.ground
    run = ground.incarnation("gone.spool")
    ground.sql("UPDATE incarnations SET seen_at = now() - interval '5 min' WHERE id = %s", run)
    published = lane.put(State.PUBLISHED)
    for job_id in (published.id, JobId(10**6)):
        ledger.spool_found(
            ground.conn, job_id=job_id, attempt=1, token=Token(uuid4()), incarnation=run,
            line={"started": True}, who="rescue",
        )  # fmt: skip
    for _ in range(2):
        alerts.sweep(ground.conn)
    keys = {row["key"].partition("/to:")[0] for row in raised(ground)}
    assert len(keys) == 3
    assert len([key for key in keys if key.startswith("alert:orphan/")]) == 2
    assert len([key for key in keys if key.startswith(f"alert:silent/run:{run}/")]) == 1


def test_an_alert_in_doubt_raises_no_other(told: tuple[Alerts, Lane]) -> None:
    alerts, lane = told
    one = doubt(lane, key="alert:doubt/channel:1/job:x/at:once/to:2/ops@example.org")
    for _ in range(2):
        alerts.asked(lane.ground.conn, one, "this platform cannot be looked at")
        alerts.sweep(lane.ground.conn)
    assert len(raised(lane.ground)) == 1
    assert len([row for row in lane.ground.events(one.job_id) if row["event"] == "alert"]) == 1


def test_without_settings_the_log_is_told_once(own_ground: Ground) -> None:
    lane = own_ground.lane()
    alerts = make(lane)
    one = doubt(lane)
    alerts.asked(own_ground.conn, one, "")
    alerts.sweep(own_ground.conn)
    by_log(own_ground.conn, Alert(Incident.DOUBT, job_id=one.job_id))
    assert raised(own_ground) == []
    assert len(alerts._logged) == 1


def test_a_page_takes_no_alerts(own_ground: Ground) -> None:
    lane = own_ground.lane()
    alerts = make(lane, channels=(str(lane.channel_id),), to=TO)
    alerts.asked(own_ground.conn, doubt(lane), "")
    assert raised(own_ground) == []


def test_what_goes_wrong_with_an_alert_undoes_nothing(told: tuple[Alerts, Lane]) -> None:
    alerts, lane = told
    one = doubt(lane)
    alerts.to = ("x" * 600,)  # a key that no row can hold
    with lane.ground.conn.transaction():
        lane.ground.conn.execute(
            "UPDATE doubts SET last_look = 'kept' WHERE job_id = %s", [one.job_id]
        )
        alerts.asked(lane.ground.conn, one, "")
    assert raised(lane.ground) == []
    assert lane.ground.one("SELECT last_look FROM doubts WHERE job_id = %s", one.job_id) == "kept"


def test_it_comes_and_goes_with_its_transaction(told: tuple[Alerts, Lane]) -> None:
    alerts, lane = told
    one = doubt(lane)
    with lane.ground.conn.transaction(force_rollback=True):
        alerts.asked(lane.ground.conn, one, "")
    assert raised(lane.ground) == []
    alerts.asked(lane.ground.conn, one, "")
    assert len(raised(lane.ground)) == 3


def test_a_blocked_mailbox_is_not_told_of_through_itself(told: tuple[Alerts, Lane]) -> None:
    alerts, lane = told
    ground = lane.ground
    ground.sql(
        "UPDATE gates SET blocked_at = clock_timestamp(), blocked_reason = 'needs_reconnecting'"
        " FROM channels c WHERE c.id = channel_id AND c.platform = 'mail'"
    )
    alerts.sweep(ground.conn)
    (row,) = raised(ground)
    assert row["kind"] == "webhook"
