"""What people say of a page: looked at now or earlier, and true, or sworn and wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from publisher.editorial import quarantine, unknowns, workers
from publisher.editorial.unknowns import Again, Seen, Signed
from publisher.engine import ledger, queries
from publisher.engine.errors import PublisherError
from publisher.engine.job import JobId
from tests.stateful.life import HORIZON, Life
from tests.stateful.page import Stored

_SIGNED = Signed("operator", "I looked")


class Word(StrEnum):
    """What somebody says of a post that may be live."""

    TRUTH = "the truth, and send it again if it is not there"
    TRUTH_GIVE_UP = "the truth, and give it up if it is not there"
    TRUTH_LATER = "the truth, and send it in an hour if it is not there"
    LIVE_UNSEEN = "it is live, without a link"
    NOT_LIVE = "it is not live, without looking"
    NOT_LIVE_LATER = "it is not live, send it in an hour, without looking"
    NOT_LIVE_GIVE_UP = "it is not live, give it up, without looking"
    ANOTHERS = "it is live, with the link of another post"
    DROP = "drop it"


@dataclass
class Desk:
    """Where people decide. ``open``: doubts as they were seen; they may be decided much later."""

    life: Life
    open: list[Seen] = field(default_factory=list)

    def see(self, job_id: JobId) -> None:
        """Look at one doubt, and keep the page open."""
        try:
            with self.life.app() as conn:
                seen = unknowns.see(conn, self.life.registry, job_id, horizon=HORIZON)
        except PublisherError as error:
            self.life.stage.did[f"see: {error.code}"] += 1
            return
        self.open = [*self.open[-3:], seen]

    def decide(self, seen: Seen, word: Word) -> None:
        """Record a verdict about what was seen then; what it is worth is noted for the judge."""
        life, key = self.life, seen.doubt.key
        page = life.world.page
        there, may_come = page.of(key), page.may_arrive(key)
        act = self._act(seen, word, there)
        others = [post.key for post in page.posts if post.key != key]
        if act is None or not self._does(f"{word}", act):
            return
        state = life.stage.ground.state(seen.doubt.job_id)
        if may_come and state in {"scheduled", "failed"}:
            told = [life.judge.tell(row) for row in life.judge.rows() if row["key"] == key]
            message = f"LOCK: {key} was called absent while it may still arrive\n{told[0]}"
            raise AssertionError(message)
        is_wrong = {
            Word.LIVE_UNSEEN: not there,
            Word.NOT_LIVE: bool(there),
            Word.NOT_LIVE_LATER: bool(there),
            Word.NOT_LIVE_GIVE_UP: bool(there),
            Word.ANOTHERS: True,
        }.get(word, False)
        if is_wrong or life.judge.excuses.unnoticed:
            life.judge.excuses.sworn.add(key)
        if word is Word.ANOTHERS:
            life.judge.excuses.sworn.add(others[-1])

    def _act(self, seen: Seen, word: Word, there: list[Stored]) -> Callable[[], Any] | None:
        """What the word comes to, as the page is; None where there is nothing to say."""
        engine, registry = self.life.stage.ground.app.engine, self.life.registry
        now, name = self.life.stage.clock.now(), seen.channel.name
        hour = timedelta(hours=1)
        tells_the_truth = word in {Word.TRUTH, Word.TRUTH_GIVE_UP, Word.TRUTH_LATER}
        if word is Word.DROP:
            return lambda: unknowns.drop(engine, seen, _SIGNED)
        if word is Word.LIVE_UNSEEN or (tells_the_truth and there and not seen.can_look):
            return lambda: unknowns.decide_attested(engine, seen, _SIGNED)
        if word is Word.ANOTHERS:
            there = [post for post in self.life.world.page.posts if post.key != seen.doubt.key]
            if not there:
                return None
        if there and (tells_the_truth or word is Word.ANOTHERS):
            return lambda: unknowns.decide_live(
                engine, registry, seen, there[-1].link, _SIGNED, horizon=HORIZON
            )
        again = {
            Word.TRUTH_GIVE_UP: None,
            Word.NOT_LIVE_GIVE_UP: None,
            Word.TRUTH_LATER: Again(name, at=now + hour, useful_until=now + 2 * hour),
            Word.NOT_LIVE_LATER: Again(name, at=now + hour, useful_until=now + 2 * hour),
        }.get(word, Again(name))
        return lambda: unknowns.decide_absent(engine, seen, again, _SIGNED, horizon=HORIZON)

    def put_off(self, seen: Seen, what: str) -> None:
        """Have it looked at, take it, hand it over, or have no alert for a while."""
        life = self.life
        until = life.stage.clock.now() + timedelta(hours=1)
        acts: dict[str, Callable[[Any], None]] = {
            "look": lambda conn: unknowns.look_now(conn, seen, who="operator"),
            "take": lambda conn: unknowns.take(conn, seen, who="operator"),
            "hand over": lambda conn: unknowns.hand_over(
                conn, seen, to="chief", note="", who="operator"
            ),
            "snooze": lambda conn: unknowns.snooze(conn, seen, until=until, who="operator"),
        }
        if life.attempt(acts[what]):
            life.stage.did[what] += 1

    def state_gone(self, run: int) -> None:
        """A dead worker's machine is gone, an operator says: it is."""
        host = self.life.stage.ground.sql("SELECT host FROM incarnations WHERE id = %s", run)
        if host and self.life.attempt(
            lambda conn: workers.declare_gone(
                conn, run, _SIGNED, confirm=host[0]["host"],
                silent_after=timedelta(seconds=60), horizon=HORIZON,
            )
        ):  # fmt: skip
            self.life.stage.did["state gone"] += 1

    def release(self, channel_id: int, *, blindly: bool) -> None:
        """Let go what a channel's quarantine holds: none of it is on the page."""
        life = self.life
        page = life.world.page
        with life.app() as conn:
            held = queries.suspect_rows(conn, channel_id=channel_id)
        there = {row.key for row in held if page.of(row.key)}
        coming = {row.key for row in held if page.may_arrive(row.key)}
        if there and not blindly:
            return
        name = held[0].channel if held else ""
        if self._does(
            "release",
            lambda: life.attempt(
                lambda conn: quarantine.release(conn, str(channel_id), _SIGNED, confirm=name)
            ),
        ):
            life.judge.excuses.sworn |= there
            assert not coming, f"LOCK: {coming} were let go while they may still arrive"

    def bind(self, job_id: JobId) -> None:
        """What is in quarantine and on the page is bound to it."""
        life = self.life
        there = life.world.page.of(life.key(job_id))
        if not there:
            return
        with life.app() as conn:
            row = next((r for r in queries.suspect_rows(conn) if r.id == job_id), None)
        if row is None:
            return
        link = there[-1].link if row.platform != "blind" else ""
        self._does(
            "bind",
            lambda: quarantine.bind(
                life.stage.ground.app.engine, life.registry, job_id, link, _SIGNED
            ),
        )

    def settle_all(self) -> None:
        """Tell the truth of everything that a person is asked about."""
        life = self.life
        for doubt in ledger.doubts(life.root, life.ids("unknown")):
            if doubt.asked_at is not None:
                self.see(doubt.job_id)
                if self.open and self.open[-1].doubt.job_id == doubt.job_id:
                    self.decide(self.open[-1], Word.TRUTH_GIVE_UP)
        with life.app() as conn:
            held = queries.suspect_rows(conn)
        asked = [row for row in held if row.asked_at is not None]
        for row in asked:
            self.bind(row.id)
        for channel_id in sorted({row.channel_id for row in asked}):
            self.release(channel_id, blindly=False)

    def _does(self, what: str, act: Callable[[], Any]) -> bool:
        try:
            done = act()
        except PublisherError as error:
            self.life.stage.did[f"{what}: {error.code}"] += 1
            return False
        if done is False:
            return False
        self.life.stage.did[what] += 1
        return True
