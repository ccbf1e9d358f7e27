"""A busy past: every state, reached by the engine's own verbs, and nothing in it amiss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from publisher.editorial import posts, removals, reviews, schedules, versions
from publisher.editorial.documents import Document, Variant
from publisher.editorial.posts import Destination, Draft
from publisher.engine import ledger, queries, retry
from publisher.engine.alert import Alert, Incident
from publisher.engine.content import Letter, Post, digest
from publisher.engine.job import Hold, JobId, State, Token
from publisher.engine.ledger import Claimed, Doubt, Moved
from publisher.engine.ledger import alerts as alert_ledger
from publisher.engine.outcome import Published, Reason, Unauthorized
from publisher.engine.registry import Registry
from publisher.engine.removal import Removing
from publisher.engine.retry import Rest, Settlement
from tests.engine.fallen import Fallen, replay
from tests.engine.ground import (
    REFUSED_ROW,
    Ground,
    Lane,
    Placed,
    decided,
    key,
    lost,
    not_sent,
    published,
    refused,
    refused_for_now,
)
from tests.engine.platform import Fake

USEFUL_FOR = timedelta(days=1)
AT_ONCE = timedelta(0)
ALL_STATES = frozenset(State)


@dataclass
class Desk(Lane):
    """A channel whose jobs come from posts, as an editor's do."""

    def post(self, *, due: timedelta = AT_ONCE) -> JobId:
        """A post that is written, approved and scheduled."""
        number = next(self._count)
        draft = Draft(
            Post(f"channel {self.channel_id}, post {number}").to_json(),
            (Destination(self.channel_id, datetime.now(UTC) + due, "UTC"),),
        )
        with self.ground.app.engine.begin() as conn:
            (version,) = posts.create(conn, [draft], who="editor")
            assert version is not None
            posts.approve(conn, [version], who="chief")
            (job,) = posts.schedule(
                conn, [version], useful_for=USEFUL_FOR, registry=Registry([Fake()])
            )
        return job.job_id

    def add(self, **changes: Any) -> JobId:  # noqa: ANN401 - of NewJob
        if "kind" not in changes:
            return self.post()
        return super().add(**({"run_at": datetime.now(UTC)} | changes))

    def claimed(self, job_id: JobId | None = None, **changes: Any) -> Claimed:  # noqa: ANN401
        """As in a lane; the job goes back to the queue it is of."""
        job_id = self.add(**changes) if job_id is None else job_id
        queue = self.ground.row(job_id)["queue"]
        job = super().claimed(job_id)
        self.ground.sql("UPDATE jobs SET queue = %s WHERE id = %s", queue, job_id)
        return job

    def ends(self, *ends: Settlement, job_id: JobId | None = None) -> Placed:
        """A job whose sends end so, one after the other."""
        job = Placed(self.post() if job_id is None else job_id, Token(uuid4()))
        for end in ends:
            job = self.sending(job.id)
            assert self.end(job, end).done
        return job


@dataclass
class Past:
    """Makes the whole of it. ``jobs``: by what happened to them."""

    ground: Ground
    folder: Path
    jobs: dict[str, JobId] = field(default_factory=dict)
    desk: Desk = field(init=False)
    mail: int = field(init=False)

    def __post_init__(self) -> None:
        lane = self.ground.lane()
        self.mail = self.ground.lane(platform="mail").channel_id
        run = self.ground.incarnation("desk.spool")
        self.desk = Desk(self.ground, lane.channel_id, "publish", incarnation=run)

    @classmethod
    def made(cls, ground: Ground, folder: Path) -> Past:
        past = cls(ground, folder)
        past.files()
        past.sends()
        past.deletions()
        past.people()
        past.doubts()
        past.verdicts()
        past.the_dead()
        past.lates()
        past.looks()
        past.the_rest()
        past.edits()
        # Last: what is under way stays so.
        past.jobs["claimed"] = past.desk.claimed().id
        past.start_hand(past.desk.claimed())
        past.jobs["sending"] = past.desk.sending().id
        return past

    def start_hand(self, job: Claimed) -> None:
        assert ledger.start_hands(self.ground.conn, [key(job)], lease=60.0)
        self.jobs["at work"] = job.id

    def sends(self) -> None:
        """Sends that ended as they should, at once or after some tries."""
        at = self.desk
        for number in range(4):
            self.jobs[f"live {number}"] = at.put(State.PUBLISHED).id
        self.jobs["refused"] = at.put(State.FAILED, begun=True).id
        self.jobs["refused before"] = at.put(State.FAILED).id
        self.jobs["missed"] = at.put(State.MISSED).id
        self.jobs["second try"] = at.ends(refused_for_now(), published("second")).id
        self.jobs["third try"] = at.ends(not_sent(), refused_for_now(), published("third")).id
        self.jobs["waits for its next"] = at.ends(not_sent()).id
        closed = decided(Unauthorized(Reason.NEEDS_RECONNECTING, "expired", row=REFUSED_ROW))
        self.jobs["unauthorized"] = at.ends(closed).id
        back = at.claimed()
        assert at.end(back, retry.wait("a film is being read", 5.0)).done
        self.jobs["waits"] = back.id
        foreign = at.ends(published("second"))
        assert self.ground.state(foreign.id) is State.UNKNOWN
        self.jobs["another's id"] = foreign.id

    def deletions(self) -> None:
        """Posts that are taken down again: one is gone, one is still to go, one stays."""
        for name, end in (
            ("deleted", published("removed:1")),
            ("to be deleted", None),
            ("not deleted", refused()),
        ):
            job = self.jobs[f"{name}, live"] = self.desk.put(State.PUBLISHED).id
            with self.ground.app.engine.begin() as conn:
                new = removals.new_job(
                    queries.live_job(conn, job), now=queries.clock(conn), who="chief",
                    registry=Registry([Removing(Fake())]),
                )  # fmt: skip
                # No job here has a platform's key.
                (added,) = ledger.enqueue(conn, [replace(new, platform_key=None)])
            self.jobs[name] = added.job_id
            if end is not None:
                self.desk.ends(end, job_id=added.job_id)

    def people(self) -> None:
        """What editors and operators did."""
        at = self.desk
        self.jobs["cancelled"] = at.put(State.CANCELLED).id
        self.jobs["cancelled after a try"] = at.ends(refused_for_now()).id
        self.moved(ledger.cancel, "cancelled after a try", reason="no more")
        self.jobs["restored"] = at.post()
        self.moved(ledger.cancel, "restored")
        self.moved(ledger.restore, "restored")
        self.jobs["held"] = at.post()
        self.moved(ledger.hold, "held", reason="wait for the lawyer")
        self.jobs["released"] = at.claimed().id
        self.moved(ledger.hold, "released")
        self.moved(ledger.release_hold, "released")
        at.ends(published("released"), job_id=self.jobs["released"])
        later = datetime.now(UTC) + timedelta(hours=3)
        self.jobs["moved"] = at.post(due=timedelta(hours=1))
        self.moved(ledger.reschedule, "moved", at=later)
        self.jobs["for tomorrow"] = at.post(due=timedelta(days=1))
        self.jobs["requeued"] = at.ends(refused()).id
        self.moved(ledger.requeue, "requeued")
        at.ends(published("requeued"), job_id=self.jobs["requeued"])
        self.jobs["rewritten"] = at.post(due=timedelta(hours=2))
        self.rewrite(self.jobs["rewritten"])
        self.jobs["over"] = at.post(due=-USEFUL_FOR - timedelta(minutes=1))
        assert self.jobs["over"] in ledger.expire(self.ground.conn, who="worker run 1")

    def moved(self, act: Callable[..., Moved], name: str, **how: Any) -> None:  # noqa: ANN401 - of the verb
        with self.ground.app.engine.begin() as conn:
            act(conn, self.jobs[name], who="operator", **how)

    def rewrite(self, job_id: JobId) -> None:
        row = self.ground.row(job_id)
        with self.ground.app.engine.begin() as conn:
            text = Post("said better").to_json()
            version = posts.revise(conn, row["post_id"], text, who="editor")
            posts.approve(conn, [version], who="chief")
            ledger.replace(
                conn, job_id, content=text, who="editor", version_id=version.id,
                version=version.number,
            )  # fmt: skip

    def doubts(self) -> None:
        """What may be live, at each stage of being looked after."""
        at, conn = self.desk, self.ground.conn
        for name in ("fresh", "looked at", "asked", "taken", "snoozed", "held by a look"):
            self.jobs[name] = at.put(State.UNKNOWN).id
        held = {doubt.job_id: token for doubt, token in
                ledger.claim_doubts(conn, limit=100, lease=60.0)}  # fmt: skip
        mine = held.pop(self.jobs["held by a look"])
        assert mine is not None
        for name in ("looked at", "asked", "taken", "snoozed"):
            token = held.pop(self.jobs[name])
            asked = None if name == "looked at" else "nothing can be seen"
            ledger.look_again(
                conn, self.jobs[name], token, last_look="not seen", pause=30.0, asked=asked
            )
            if asked is not None:
                self.tell(self.jobs[name])
        ledger.let_go(conn, held)
        ledger.take(conn, self.jobs["taken"], who="operator")
        ledger.tell(conn, self.jobs["taken"], "take", who="operator", attempt=1, detail={})
        until = datetime.now(UTC) + timedelta(hours=8)
        ledger.snooze(conn, self.jobs["snoozed"], until=until)
        ledger.tell(
            conn, self.jobs["snoozed"], "snooze", who="operator", attempt=1,
            detail={"until": until.isoformat()},
        )  # fmt: skip

    def tell(self, job_id: JobId) -> None:
        """An alert about a doubt: its mail, and the line in the journal."""
        doubt = self.doubt(job_id)
        base = f"alert:doubt/channel:{self.desk.channel_id}/job:{job_id}/at:once"
        address = f"{base}/to:{self.mail}/me@example.org"
        letter = Letter("me@example.org", "one post may be live", "look", doubt.now)
        self.desk.add(
            key=address, kind="mail", queue="mail", channel_id=self.mail,
            content=letter.to_json(), useful_until=datetime.now(UTC) + USEFUL_FOR,
        )  # fmt: skip
        alert = Alert(Incident.DOUBT, doubt.since, job_id, 1)
        alert_ledger.keep_told(self.ground.conn, alert, doubt.since.isoformat(), base, "alerts")

    def doubt(self, job_id: JobId) -> Doubt:
        (doubt,) = ledger.doubts(self.ground.conn, [job_id])
        return doubt

    def look(self, job: Placed, evidence: dict[str, object], *, by: str = "reconciler") -> None:
        ledger.record_look(
            self.ground.conn, job_id=job.id, attempt=1, token=job.token, by=by, took=0.001,
            evidence=evidence,
        )  # fmt: skip

    def verdicts(self) -> None:
        """What machines and people decided, and what followed."""
        at = self.desk
        job = self.doubted("found")
        self.look(job, {"kind": "Found", "remote_id": "seen", "permalink": None})
        self.live(job.id, "seen", who="reconciler")
        self.live(self.doubted("named").id, "named", also=[("named twice", None)])
        self.live(self.doubted("vouched for").id, None)
        self.jobs["held once"] = at.post()
        self.moved(ledger.hold, "held once", reason="wait for the lawyer")
        self.moved(ledger.release_hold, "held once")
        at.ends(lost(), job_id=self.jobs["held once"])
        self.live(self.jobs["held once"], "held once")
        job = self.doubted("absent, again")
        self.look(job, {"kind": "Absent", "searched": 3})
        self.absent(job.id, send=True, who="reconciler")
        at.ends(published("again"), job_id=job.id)
        self.absent(self.doubted("absent, given up").id, send=False)
        self.absent(self.doubted("risked").id, send=True, forced=True)
        at.ends(published("risked"), job_id=self.jobs["risked"])
        job = self.doubted("absent, for later")
        later = datetime.now(UTC) + timedelta(hours=2)
        self.absent(job.id, send=True, send_at=later, useful_until=later + USEFUL_FOR)
        for name in ("repeated", "to be repeated", "repeat lost", "repeat called off"):
            self.repeat(self.doubted(name).id)
        at.ends(published("repeated"), job_id=self.jobs["repeated"])
        at.ends(lost(), job_id=self.jobs["repeat lost"])
        self.moved(ledger.cancel, "repeat called off")
        assert self.ground.state(self.jobs["repeat called off"]) is State.UNKNOWN
        self.repeat(self.doubted("repeat refused").id)
        at.ends(refused(), job_id=self.jobs["repeat refused"])
        assert self.ground.state(self.jobs["repeat refused"]) is State.UNKNOWN
        self.absent(self.jobs["repeat refused"], send=True)
        at.ends(published("after all"), job_id=self.jobs["repeat refused"])
        job = self.doubted("dropped")
        ledger.drop(self.ground.conn, self.doubt(job.id), who="operator", reason="old")

    def doubted(self, name: str) -> Placed:
        job = self.desk.put(State.UNKNOWN)
        self.jobs[name] = job.id
        return job

    def live(
        self,
        job_id: JobId,
        remote_id: str | None,
        *,
        who: str = "operator",
        **how: Any,  # noqa: ANN401
    ) -> None:
        ledger.confirm_published(
            self.ground.conn, self.doubt(job_id), remote_id=remote_id, permalink=None, who=who,
            reason="seen on the page", **how,
        )  # fmt: skip

    def absent(self, job_id: JobId, *, send: bool, who: str = "operator", **how: Any) -> None:  # noqa: ANN401
        ledger.confirm_absent(
            self.ground.conn, self.doubt(job_id), send=send, who=who, horizon=AT_ONCE,
            reason="not on the page", **({"send_at": None} | how),
        )  # fmt: skip

    def repeat(self, job_id: JobId) -> None:
        until = datetime.now(UTC) + timedelta(hours=1)
        ledger.repeat(
            self.ground.conn, self.doubt(job_id), until=until, after=0.0, who="reconciler",
            reason="its key lives",
        )  # fmt: skip

    def the_dead(self) -> None:
        """Worker runs that died, and what was made of what they held."""
        at, conn = self.desk, self.ground.conn
        run = self.ground.incarnation("dead.spool")
        alive, at.incarnation = at.incarnation, run
        self.jobs["rescued"] = at.claimed().id
        job = at.claimed()
        self.start_hand(job)
        self.jobs["poison"] = job.id
        self.jobs["died in a send"] = at.sending().id
        assert len(ledger.forsake(conn, run, deaths=1, who="worker run 1")) == 3
        ledger.end(conn, run, "its file could be locked")
        gone = at.incarnation = self.ground.incarnation("gone.spool")
        self.jobs["machine gone"] = at.sending().id
        at.incarnation = alive
        assert ledger.forsake(conn, gone, deaths=3, who="worker run 1")
        with self.ground.app.engine.begin() as desk:
            assert ledger.declare_gone(desk, gone, who="operator", reason="it burnt")
        assert self.ground.state(self.jobs["poison"]) is State.FAILED

    def lates(self) -> None:
        """Answers that came after their job was taken away."""
        at = self.desk
        for name, end in (
            ("late and live", published("late")),
            ("late and refused", refused()),
            ("late and deferred", refused_for_now()),
        ):
            job = self.doubted(name)
            assert self.late(job, end) is ledger.Late.MOVED
        job = self.doubted("live after all")
        self.absent(job.id, send=True)
        again = at.sending(job.id)
        assert self.late(job, published("the first")) is ledger.Late.KEPT_ALERT
        assert at.end(again, not_sent()).live
        assert self.ground.state(job.id) is State.PUBLISHED
        job = self.doubted("live though cancelled")
        self.absent(job.id, send=True)
        self.moved(ledger.cancel, "live though cancelled")
        assert self.late(job, published("too late")) is ledger.Late.KEPT_ALERT
        job = self.doubted("refused, then sent")
        self.absent(job.id, send=True)
        at.ends(published("sent"), job_id=job.id)
        assert self.late(job, refused()) is ledger.Late.KNOWN

    def late(self, job: Placed, end: Settlement) -> ledger.Late:
        return ledger.record_late(self.ground.conn, job.id, job.token, end, who="worker run 1")

    def looks(self) -> None:
        """Looks before a second send."""
        at = self.desk
        for name, end in (
            ("found before a second send", None),
            ("unclear before a second send", retry.look_unclear("two could be ours")),
            ("clean before a second send", published("clean")),
        ):
            first = at.ends(refused_for_now())
            self.jobs[name] = first.id
            self.look(first, {"kind": "Inconclusive", "clean": True}, by="worker run 1")
            job = at.claimed(first.id)
            if end is None:
                found = retry.found("was there", None, attempt=1, about=first.token)
                assert at.end(job, found).done
                continue
            if end.outcome == "published":
                job = Placed(job.id, job.token, at.begin(job))
            assert at.end(job, end).done

    def files(self) -> None:
        """What workers' own files told of, and the quarantine that followed."""
        ground = self.ground
        for name in ("in quarantine", "found there", "let go", "cancelled there"):
            self.jobs[name] = self.desk.post(due=timedelta(minutes=-1))
        other = ground.lane()
        run = Fallen.start(other, self.folder)
        found = Desk(ground, other.channel_id, "publish", incarnation=run.number)
        lost_by_us = found.sending()
        run.begins(lost_by_us)
        run.spool.start(lost_by_us.token)
        answered = found.sending()
        run.begins(answered)
        run.spool.start(answered.token)
        run.spool.answer(answered.token, Published("in the file"))
        unrecorded = Placed(found.post(due=timedelta(hours=1)), Token(uuid4()))
        run.begins(unrecorded)
        run.spool.start(unrecorded.token)
        run.dies()
        replay(ground, self.folder)
        assert ground.state(unrecorded.id) is State.UNKNOWN
        assert ground.row(self.jobs["let go"])["hold_reason"] == Hold.QUARANTINE
        ledger.found_live(
            ground.conn, self.jobs["found there"], remote_id="was there before", permalink=None,
            who="operator", reason="seen on the page",
        )  # fmt: skip
        gone = [self.jobs["let go"]]
        assert ledger.release_suspects(ground.conn, gone, who="operator", reason="not there")
        self.moved(ledger.cancel, "cancelled there")

    def the_rest(self) -> None:
        """Unique work, gates, and a job on its way."""
        at, ground = self.desk, self.ground
        for name, state in (("unique and live", State.PUBLISHED), ("unique", State.SCHEDULED),
                            ("unique, failed", State.FAILED)):  # fmt: skip
            self.jobs[name] = at.put(
                state, kind="ping", queue="ping", unique_for=timedelta(hours=1)
            ).id
        other = ground.lane()
        ledger.rest_channels(
            ground.conn,
            {(other.channel_id, 1): Rest(seconds=60.0, blocked=Reason.NEEDS_RECONNECTING)},
        )
        with ground.app.engine.begin() as conn:
            ledger.pause(conn, ground.lane().channel_id, who="operator")
        job = at.claimed()
        step = Progressed(job)
        assert ledger.save_progress(ground.conn, [step.stored], lease=60.0)
        self.jobs["on its way"] = job.id

    def edits(self) -> None:
        """What became of posts that were changed after their approval, or refused and mended."""
        at = self.desk
        self.jobs["mended"] = at.ends(refused()).id
        self.save("mended", "shorter")
        self.review(reviews.approve, "mended")
        self.jobs["mends it"] = self.schedule_again("mended")
        at.ends(published("mended"), job_id=self.jobs["mends it"])
        self.jobs["begun, then changed"] = at.ends(refused_for_now()).id
        self.save("begun, then changed", "better")
        self.review(reviews.approve, "begun, then changed")
        (successor,) = self.ground.sql(
            "SELECT id FROM jobs WHERE replaces = %s", self.jobs["begun, then changed"]
        )
        self.jobs["has its place"] = successor["id"]
        self.jobs["awaits its approval"] = at.post(due=timedelta(hours=1))
        self.save("awaits its approval", "not yet approved")
        self.jobs["approval withdrawn"] = at.post(due=timedelta(hours=1))
        self.review(reviews.withdraw, "approval withdrawn")
        self.jobs["withdrawn and approved anew"] = at.ends(published("approved once")).id
        self.review(reviews.withdraw, "withdrawn and approved anew")
        self.review(reviews.approve, "withdrawn and approved anew")
        self.jobs["in a form of its own"] = at.post()
        self.save("in a form of its own", "for all", own="for this one")
        self.review(reviews.approve, "in a form of its own")
        at.ends(published("own form"), job_id=self.jobs["in a form of its own"])

    def save(self, name: str, text: str, *, own: str | None = None) -> None:
        variants = {} if own is None else {self.desk.channel_id: Variant.of(text=own)}
        with self.ground.app.engine.begin() as conn:
            versions.save(
                conn, self.post_of(name), Document(Post(text), variants=variants), who="editor",
                revision=None, registry=Registry([Fake()]),
            )  # fmt: skip

    def review(self, act: Callable[..., object], name: str) -> None:
        how = {} if act is reviews.withdraw else {"registry": Registry([Fake()])}
        with self.ground.app.engine.begin() as conn:
            act(conn, self.post_of(name), who="chief", **how)

    def schedule_again(self, name: str) -> JobId:
        place = Destination(self.desk.channel_id, datetime.now(UTC), "UTC")
        with self.ground.app.engine.begin() as conn:
            done = schedules.schedule(
                conn, self.post_of(name), [place], who="chief", registry=Registry([Fake()]),
                useful_for=USEFUL_FOR,
            )  # fmt: skip
        return done.jobs[0].job_id

    def post_of(self, name: str) -> int:
        return int(self.ground.row(self.jobs[name])["post_id"])


@dataclass(frozen=True)
class Progressed:
    """A claimed job after one step."""

    job: Claimed

    @property
    def stored(self) -> ledger.Progressed:
        return ledger.Progressed(
            self.job.id, self.job.token, digest(self.job.content), '{"container": "c1"}'
        )
