"""Rehearsing on a real page, with the sandbox as the page: real workers, a real SIGKILL."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from publisher import bootstrap
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.editorial import channels, rehearsals
from publisher.editorial.rehearsals import RealPostsDue
from publisher.engine import audit, ledger, queries
from publisher.engine.content import Post
from publisher.engine.errors import Conflict
from publisher.engine.job import REHEARSAL, Channel, Hold, NewJob, State, rehearsal_key
from publisher.engine.witness import Cause
from publisher.rehearsal.errors import SetUpError
from publisher.rehearsal.real import (
    CleanResult,
    How,
    Patience,
    Question,
    SmokeResult,
    clean,
    processes,
    shown,
    smoke,
)
from publisher.sandbox.pages import APPLICATION
from publisher.sandbox.process import SandboxProcess

QUICK: dict[str, Any] = {
    "poll_seconds": 0.05,
    "settling_seconds": 0.2,
    "tcp_user_timeout_seconds": 1.0,
    "look_first_seconds": 0.2,
    "look_max_seconds": 0.4,
    "look_limit": 4,
    "retry_first_seconds": 0.1,
    "retry_max_seconds": 0.2,
    "drain_seconds": 5.0,
    "graph_application": APPLICATION,
}
REHEARSED = "[rehearsal 7-1] test, will be deleted"
PATIENCE = Patience(publish=40, settle=40, look=3, pause=0.1, tries=3)
PLATFORMS = ["facebook_pages", "bluesky", "mastodon", "telegram"]
_DIALECTS = {"facebook_pages": "graph"}


@dataclass
class Page:
    """A page of the sandbox's as a channel of the deployment's, where rehearsals are allowed."""

    settings: Settings
    database: Database
    sandbox: SandboxProcess
    channel: Channel
    id: str

    def texts(self) -> list[str]:
        return self.sandbox.control.texts(self.id)

    def behave(self, behaviour: str, **how: Any) -> None:  # noqa: ANN401 - as the control has it
        self.sandbox.control.behave(behaviour, page=self.id, **how)

    def smoke(self, run: str = "41", count: int = 3, **how: Any) -> SmokeResult:  # noqa: ANN401
        self.said: list[str] = []
        return smoke(
            self.settings, self.channel.name, run, count, self.said.append,
            **({"who": "admin-1", "patience": PATIENCE} | how),
        )  # fmt: skip

    def clean(self, channel: str | None = None, **how: Any) -> CleanResult:  # noqa: ANN401
        self.said = []
        given = {"who": "admin-2", "patience": PATIENCE} | how
        return clean(self.settings, channel, self.said.append, **given)

    def jobs(self) -> tuple[queries.RehearsalJob, ...]:
        with self.database.engine.begin() as conn:
            return queries.rehearsal_jobs(conn, channel_id=self.channel.id)

    def enqueue(self, content: str, key: str, **more: Any) -> int:  # noqa: ANN401 - of NewJob
        with self.database.engine.begin() as conn:
            at = queries.clock(conn)
            new = NewJob(
                **{
                    "key": key.replace("NOW", at.isoformat()),
                    "kind": "publish",
                    "queue": "publish",
                    "channel_id": self.channel.id,
                    "content": Post(content).to_json(),
                    "run_at": at,
                }
                | more
            )
            (added,) = ledger.enqueue(conn, [new])
        return added.job_id

    def events(self) -> list[dict[str, Any]]:
        with self.database.engine.begin() as conn:
            rows = conn.execute(
                text("SELECT event, who, detail FROM job_events WHERE event = 'withdraw'")
            )
            return [dict(row._mapping) for row in rows]

    def broken(self) -> list[str]:
        """The audit's invariants that do not hold, asked in the role that it has."""
        with (
            Database.open(
                self.settings, Role.ENGINE, application_name="test audit", pool_size=1
            ) as engine,
            engine.connect_driver() as conn,
        ):
            return [one.id for one in audit.CATALOGUE if audit.ask(conn, one, None, alerted=True)]


@pytest.fixture
def quick(settings: Settings) -> Settings:
    return settings.model_copy(update=QUICK)


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxProcess]:
    with SandboxProcess.start(tmp_path / "sandbox", fsync=False) as running:
        yield running


@pytest.fixture
def connect(
    quick: Settings, app_database: Database, sandbox: SandboxProcess
) -> Callable[[str], Page]:
    def made(platform: str) -> Page:
        dialect = _DIALECTS.get(platform, platform)
        if dialect == "graph":
            (account,) = sandbox.control.add_pages(1)
        else:
            account = sandbox.control.add_accounts(dialect, 1)[0]
        with bootstrap.open_app(quick, app_database) as app, app_database.engine.begin() as conn:
            channel = channels.add(
                conn,
                app.vault,
                app.registry,
                platform=platform,
                name=f"Page on {platform}",
                remote_id=account["id"],
                base_url=sandbox.url,
                token=account["token"],
                trusted=True,
            )
            rehearsals.allow(conn, app.registry, channel, who="admin-1")
        return Page(quick, app_database, sandbox, channel, account["id"])

    return made


@pytest.fixture
def page(connect: Callable[[str], Page]) -> Page:
    return connect("facebook_pages")


@pytest.mark.parametrize("platform", ["facebook_pages", "bluesky", "mastodon"])
def test_three_posts_one_of_them_killed_found_and_all_gone(
    connect: Callable[[str], Page], platform: str
) -> None:
    page = connect(platform)
    page.sandbox.control.foreign_post(page.id, "An editor's own")
    result = page.smoke()
    assert (result.exit_code, result.faults, result.unproved, result.left) == (0, (), (), ())
    assert [one.mark for one in result.posted] == [f"[rehearsal 41-{n}]" for n in (1, 2, 3)]
    assert [(one.state, one.once) for one in result.posted] == [(State.PUBLISHED, True)] * 3
    assert [one.killed for one in result.posted] == [False, False, True]
    assert [one.attempts for one in result.posted][:2] == [1, 1]
    assert [gone.how for gone in result.removed] == [How.DELETED] * 3
    assert page.texts() == ["An editor's own"]
    # The killed one went through the doubt, and a look of ours found it.
    with page.database.engine.begin() as conn:
        detail = queries.job_detail(conn, result.posted[2].job_id)
    assert [look.evidence["kind"] for look in detail.looks][-1] == "Found"
    assert any(moment.event == "verdict" for moment in detail.timeline)
    assert detail.row.withdrawn
    assert [(line["who"], line["detail"]["how"]) for line in page.events()] == [
        ("admin-1", "deleted")
    ] * 3
    assert page.broken() == []
    assert "3 posts on" in shown(result)[0]
    assert page.clean() == CleanResult((), ())


def test_what_the_run_does_is_visible(page: Page) -> None:
    page.smoke(count=1)
    (job,) = page.jobs()
    assert (job.run, job.number, job.row.queue, job.row.post_id) == ("41", 1, REHEARSAL, None)
    assert job.row.ref is None
    assert json.loads(job.content)["text"] == "[rehearsal 41-1] test, will be deleted"
    with page.database.engine.begin() as conn:
        rows = conn.execute(text("SELECT event, detail FROM channel_events ORDER BY id")).all()
        posts = conn.scalar(text("SELECT count(*) FROM posts"))
    assert [row.event for row in rows] == ["added", "rehearsal_allowed", "rehearsed"]
    assert rows[-1].detail == {"run": "41"}
    assert posts == 0


def test_telegram_needs_a_persons_eyes(connect: Callable[[str], Page]) -> None:
    page = connect("telegram")
    asked: list[tuple[Question, str]] = []

    def nobody(question: Question, mark: str, where: str) -> bool:
        asked.append((question, mark))
        assert page.id in where
        return False

    result = page.smoke(ask=nobody)
    # The platform named the first two; of the killed one it tells nobody.
    assert [one.state for one in result.posted] == [State.PUBLISHED, State.PUBLISHED, State.UNKNOWN]
    assert len(result.notes) == 2
    assert len(result.removed) == 2
    (left,) = result.left
    assert result.exit_code == 1
    assert left.mark == "[rehearsal 41-3]"
    assert "publisher unknowns show" in left.then
    assert page.texts() == ["[rehearsal 41-3] test, will be deleted"]
    assert asked[0] == (Question.IS_IT_THERE, "[rehearsal 41-3]")
    # It stands among the doubts; whoever waits for the editors' posts does not wait for it.
    with page.database.engine.begin() as conn:
        assert [row.id for row in queries.doubt_rows(conn)] == [left.job_id]
        assert queries.due_counts(conn).by_state == {}
        assert queries.due_counts(conn, only=[left.job_id]).unknown == 1

    # A person who sees it says so, deletes it there, and says that too.
    def somebody(question: Question, _mark: str, _where: str) -> bool:
        if question is Question.IS_IT_DELETED:
            (post,) = page.sandbox.control.posts(page.id)
            page.sandbox.control.take_down(post["id"])
        return True

    cleaned = page.clean(ask=somebody)
    assert (cleaned.exit_code, [gone.how for gone in cleaned.removed]) == (0, [How.BY_HAND])
    assert page.clean() == CleanResult((), ())
    assert page.texts() == []
    assert page.broken() == []


def test_a_deletion_that_is_refused_fails_the_run_with_links(page: Page) -> None:
    page.behave("refuse-invalid", endpoint="delete", error={"code": 200})
    result = page.smoke(count=2)
    assert (result.exit_code, len(result.left), len(result.removed)) == (1, 1, 1)
    (left,) = result.left
    assert left.where.startswith("http")
    assert any(left.where in line for line in page.said)
    assert len(page.texts()) == 1
    # The next run does not begin on top of it.
    with pytest.raises(Conflict, match="publisher rehearse clean") as refused:
        page.smoke("42")
    assert refused.value.code == "clean-first"
    cleaned = page.clean(page.channel.name)
    assert (cleaned.exit_code, [gone.how for gone in cleaned.removed]) == (0, [How.DELETED])
    assert page.texts() == []


@pytest.mark.parametrize("behaviour", ["lose-answer", "fail-500"])
def test_a_deletion_without_an_answer_is_asked_for_again(page: Page, behaviour: str) -> None:
    page.behave(behaviour, endpoint="delete", times=2)
    result = page.smoke(count=1)
    assert (result.exit_code, [gone.how for gone in result.removed]) == (0, [How.DELETED])
    assert page.texts() == []


def test_what_was_deleted_by_hand_is_seen_to_be_gone(page: Page) -> None:
    page.behave("refuse-invalid", endpoint="delete", times=9, error={"code": 200})
    assert page.smoke(count=1).exit_code == 1
    (post,) = page.sandbox.control.posts(page.id)
    page.sandbox.control.take_down(post["id"])
    page.sandbox.control.heal()
    cleaned = page.clean()
    assert [gone.how for gone in cleaned.removed] == [How.GONE]


def test_it_is_refused_where_nobody_allowed_it(page: Page) -> None:
    with page.database.engine.begin() as conn:
        rehearsals.forbid(conn, page.channel, who="admin-1")
    with pytest.raises(Conflict) as refused:
        page.smoke()
    assert refused.value.code == "rehearsal-not-allowed"
    assert page.jobs() == ()


def test_it_is_refused_beside_a_real_post(page: Page) -> None:
    page.enqueue("Real", "post:1/NOW", run_at=_soon(page, minutes=30))
    with pytest.raises(RealPostsDue):
        page.smoke()
    assert page.jobs() == ()


def test_a_real_post_that_comes_up_meanwhile_ends_the_run(page: Page) -> None:
    """Asked again with every enqueue: what was published by then is taken down."""

    def interrupt(line: str) -> None:
        if line.startswith("Publishing 2"):
            page.enqueue("Real", "post:1/NOW", run_at=_soon(page, minutes=30))

    with pytest.raises(RealPostsDue):
        smoke(page.settings, page.channel.name, "41", 3, interrupt, patience=PATIENCE)
    assert page.texts() == []
    assert {job.row.state for job in page.jobs()} == {State.PUBLISHED}
    assert all(job.removed_at is not None for job in page.jobs())


@pytest.mark.parametrize(
    ("run", "count", "words"),
    [("4 1", 3, "letters, digits"), ("41", 0, "1 to"), ("41", 99, "1 to")],
)
def test_bad_usage_publishes_nothing(page: Page, run: str, count: int, words: str) -> None:
    with pytest.raises(SetUpError, match=words):
        page.smoke(run, count)


def test_a_page_that_takes_nothing_is_not_rehearsed_on(page: Page) -> None:
    with page.database.engine.begin() as conn:
        channels.pause(conn, page.channel, "ops-1")
    with pytest.raises(SetUpError, match="takes no posts just now"):
        page.smoke()
    with page.database.engine.begin() as conn:
        channels.resume(conn, page.channel, "ops-1")
    page.sandbox.control.revoke(page.id)
    with pytest.raises(SetUpError, match="cannot be used"):
        page.smoke()
    assert page.jobs() == ()


def test_a_post_that_only_looks_like_one_of_the_run_is_not_touched(page: Page) -> None:
    mark = "[rehearsal 41-1] test, will be deleted"
    foreign = page.sandbox.control.foreign_post(page.id, mark)
    # One of our own, by an editor, is no rehearsal's either: its key says so.
    key = "post:1/channel:1/at:NOW"
    job_id = page.enqueue(mark, key)
    with processes.worker(page.settings.model_copy(update={"queues": ("publish",)})):
        pass
    _publish_real(page, job_id)
    before = sorted(page.texts())
    assert page.clean() == CleanResult((), ())
    assert sorted(page.texts()) == before == [mark, mark]
    assert page.smoke("41", 1).left == ()
    assert sorted(page.texts()) == before
    assert foreign in {post["id"] for post in page.sandbox.control.posts(page.id)}


def test_a_bound_post_without_the_mark_is_not_touched(page: Page) -> None:
    """The platform named an older post of our application's for one of the rehearsal's."""
    _publish_real(page, page.enqueue("An editor's own", "post:1/NOW"))
    page.enqueue(
        "[rehearsal 7-1] test, will be deleted",
        rehearsal_key("7", 1, page.channel.id, _soon(page, minutes=0)),
        queue=REHEARSAL,
    )
    with page.database.engine.begin() as conn:  # as a database that lost what it knew
        (bound,) = conn.scalars(text("SELECT remote_id FROM remote_posts")).all()
    _lie(page, bound)
    cleaned = page.clean()
    assert cleaned.exit_code == 1
    assert "does not carry the mark" in cleaned.left[0].why
    assert page.texts() == ["An editor's own"]


@pytest.mark.parametrize(
    ("line", "states"),
    [
        ("Publishing 2", [State.SCHEDULED] * 2),
        ("killing its worker", [State.PUBLISHED, State.PUBLISHED, State.SCHEDULED]),
        ("Looking for it", [State.PUBLISHED, State.PUBLISHED, State.SENDING]),
        ("Taking down", [State.PUBLISHED] * 3),
    ],
)
def test_a_run_killed_in_its_middle_is_cleaned_up(
    page: Page, line: str, states: list[State]
) -> None:
    assert _killed_run(page, line) == -signal.SIGKILL
    assert [job.row.state for job in page.jobs()] == states
    cleaned = page.clean()
    assert (cleaned.exit_code, cleaned.left) == (0, ())
    live = [job for job in page.jobs() if job.row.state is State.PUBLISHED]
    assert len(cleaned.removed) == len(live)
    assert all(job.removed_at is not None for job in live)
    assert {job.row.state for job in page.jobs()} <= {State.PUBLISHED, State.CANCELLED}
    assert page.texts() == []
    assert page.clean() == CleanResult((), ())
    assert page.broken() == []


def test_what_a_restored_database_may_have_sent_is_looked_for(page: Page) -> None:
    """Its send was lost with the commits; it is not called off, and no longer on the page."""
    at = _soon(page, minutes=-1)
    with page.database.engine.begin() as conn:
        ledger.open_quarantine(
            conn, Cause.DECLARED, strict=True, absent_after=0.0, who="ops-1", since=at
        )
        conn.execute(text("SELECT pg_sleep(0.01)"))
    key = rehearsal_key("7", 1, page.channel.id, at)
    page.enqueue(REHEARSED, key, queue=REHEARSAL, run_at=_soon(page, minutes=-0.5))
    assert [job.row.hold_reason for job in page.jobs()] == [Hold.QUARANTINE]
    page.sandbox.control.foreign_post(page.id, REHEARSED, application=APPLICATION)
    cleaned = page.clean()
    assert (cleaned.exit_code, [gone.how for gone in cleaned.removed]) == (0, [How.DELETED])
    assert page.texts() == []


def test_one_rehearsal_at_a_time_on_a_page(page: Page) -> None:
    seen: list[str] = []

    def beside(line: str) -> None:
        if line.startswith("Publishing"):
            with pytest.raises(Conflict, match="under way"):
                page_clean(page)
            seen.append(line)

    result = smoke(page.settings, page.channel.name, "41", 1, beside, patience=PATIENCE)
    assert (result.exit_code, len(seen)) == (0, 1)


def test_a_second_copy_on_the_page_is_a_broken_promise(page: Page) -> None:
    """Another post with the same mark, by our own application: the run names both."""

    def double(line: str) -> None:
        if "killing its worker" in line:
            page.sandbox.control.foreign_post(
                page.id, "[rehearsal 41-1] test, will be deleted", application=APPLICATION
            )

    result = smoke(page.settings, page.channel.name, "41", 2, double, patience=PATIENCE)
    assert result.exit_code == 1
    (fault,) = result.faults
    assert fault.startswith("[rehearsal 41-1] is on the page 2 times: http")
    assert any(line.startswith("Broken: ") for line in shown(result))
    # Which of the two is ours the journal knows; the other is not touched, and named.
    assert page.texts() == ["[rehearsal 41-1] test, will be deleted"]
    (left,) = result.left
    assert "a copy of it is there" in left.why
    (copy,) = page.sandbox.control.posts(page.id)
    assert left.where.endswith(copy["id"].rpartition("_")[2])
    page.sandbox.control.take_down(copy["id"])
    assert page.clean().exit_code == 0


def test_processes_have_the_settings_they_were_given(settings: Settings) -> None:
    given = Settings(
        **(
            settings.model_dump(exclude_unset=True)
            | {"queues": "a,b", "metrics_port": 9100, "allowed_networks": "127.0.0.0/8"}
        )
    )
    variables = processes.environment(given)
    code = "from publisher import config; print(config.load().model_dump_json())"
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, check=True, capture_output=True, text=True
    )
    theirs = json.loads(done.stdout)
    assert (theirs["queues"], theirs["metrics_port"]) == (["a", "b"], None)
    assert theirs["allowed_networks"] == ["127.0.0.0/8"]
    assert variables["PUBLISHER_DATABASE_URL"] == settings.database_url.get_secret_value()  # type: ignore[union-attr]


def test_the_worker_that_is_to_die_ends_with_its_rehearsal(page: Page) -> None:
    with processes.victim(page.settings) as worker:
        assert worker.popen.stdin is not None
        worker.popen.stdin.close()
        assert worker.popen.wait(40) == 0, worker.said()


def page_clean(page: Page) -> CleanResult:
    return clean(page.settings, page.channel.name, lambda _line: None, patience=PATIENCE)


def _soon(page: Page, *, minutes: float) -> Any:  # noqa: ANN401 - an instant
    with page.database.engine.begin() as conn:
        return queries.clock(conn) + timedelta(minutes=minutes)


def _publish_real(page: Page, job_id: int) -> None:
    """Have an editor's post published by a worker of the usual queue."""
    environment = processes.environment(page.settings)
    process = subprocess.Popen([sys.executable, "-m", "publisher", "worker"], env=environment)
    try:
        until = time.monotonic() + 40
        while time.monotonic() < until:
            with page.database.engine.begin() as conn:
                state = conn.scalar(text("SELECT state FROM jobs WHERE id = :id"), {"id": job_id})
            if state == "published":
                return
            time.sleep(0.05)
        message = f"it is {state}"
        raise AssertionError(message)
    finally:
        process.terminate()
        process.wait(30)


def _lie(page: Page, remote_id: str) -> None:
    """Make the journal say that the rehearsal's job is live as another post."""
    url = page.settings.database_url
    assert url is not None
    import psycopg  # noqa: PLC0415 - a back door, for this alone

    with psycopg.connect(url.get_secret_value(), autocommit=True) as conn:
        conn.execute("SET ROLE publisher_owner")
        conn.execute("SET search_path = publisher")
        conn.execute("ALTER TABLE jobs DISABLE TRIGGER USER")
        conn.execute("ALTER TABLE remote_posts DISABLE TRIGGER USER")
        conn.execute(
            "UPDATE remote_posts SET job_id = (SELECT id FROM jobs WHERE queue = 'rehearsal')"
        )
        conn.execute(
            "UPDATE jobs SET state = 'published', remote_id = %s, settled_at = now()"
            " WHERE queue = 'rehearsal'",
            [remote_id],
        )


def _killed_run(page: Page, line: str) -> int:
    """Run a smoke as a process that is killed when it says ``line``; its exit code."""
    code = f"""
import os, signal
from publisher import config
from publisher.rehearsal.real import Patience, smoke

def say(said):
    if {line!r} in said:
        os.kill(os.getpid(), signal.SIGKILL)

patience = Patience(publish=40, settle=40, look=3, pause=0.1)
smoke(config.load(), {page.channel.name!r}, "41", 3, say, patience=patience)
"""
    process = subprocess.run(
        [sys.executable, "-c", code],
        env=processes.environment(page.settings) | {"PYTHONPATH": str(Path.cwd())},
        check=False,
        timeout=100,
    )
    return process.returncode
