"""People who settle doubts, each act as the command line makes it: see, look at the page, decide.

They are honest: what they say of the page is what the page's own log says. So a post that is there
twice is there by our doing.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Engine
from sqlalchemy import exc as sqlalchemy_errors

from publisher import bootstrap
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.errors import DatabaseError
from publisher.db.roles import Role
from publisher.db.walls import EVERY
from publisher.editorial import unknowns
from publisher.editorial.unknowns import Again, Decision, Seen, Signed
from publisher.engine import ledger
from publisher.engine.errors import PublisherError
from publisher.engine.job import JobId
from publisher.engine.registry import Registry
from publisher.rehearsal.plan import variants
from publisher.sandbox import log as sandbox_log
from publisher.sandbox.log import LoggedPost, SandboxLog

AWAY = (DatabaseError, psycopg.Error, sqlalchemy_errors.DBAPIError)
_SIGNED = Signed("settler", "as the page's own log has it")
NOTHING = "nothing there"
_PAUSE = (0.02, 0.25)
_REMEMBERED_SECONDS = 3.0


@dataclass(slots=True)
class Desk:
    """Where one person sits."""

    settings: Settings
    log: Path
    rng: random.Random
    application: str
    _stack: ExitStack = field(default_factory=ExitStack)
    _open: bootstrap.App | None = None

    @property
    def horizon(self) -> timedelta:
        """From when on nothing more can land."""
        return timedelta(seconds=self.settings.horizon)

    def act(self, wanted: str | None = None) -> dict[str, Any]:
        """Do one thing about one doubt; whoever gets no answer asks once more, as people do."""
        what = wanted or self.rng.choice(tuple(ACTS))
        job: list[JobId] = []
        lost = ""
        for _ in range(2):
            try:
                app = self._open or self._sit_down()
                return {"settled": what, **self._about(what, job, app.database.engine, app)}
            except PublisherError as error:
                return {"settled": what, "refused": error.code}
            except AWAY as error:
                lost = type(error).__name__
                self._stack.close()
                self._open = None
                time.sleep(0.2)
        return {"settled": what, "refused": lost}

    def _sit_down(self) -> bootstrap.App:
        database = self._stack.enter_context(
            Database.open(
                self.settings,
                Role.APP,
                application_name=self.application,
                pool_size=10,
                workspace=EVERY,
            )
        )
        self._open = self._stack.enter_context(bootstrap.open_app(self.settings, database))
        return self._open

    def page(self, seen: Seen) -> tuple[list[LoggedPost], SandboxLog]:
        """What was ever put on the page of this post, and everything else there."""
        log = sandbox_log.read(self.log)
        mark = seen.doubt.key
        posts = [
            post for post in log.ever_posted
            if not post.foreign and post.page == seen.channel.remote_id
            and post.message.partition(" ")[0] == mark
        ]  # fmt: skip
        return posts, log

    def _about(
        self, what: str, job: list[JobId], engine: Engine, app: bootstrap.App
    ) -> dict[str, Any]:
        with engine.begin() as conn:
            if not job:
                doubts = [row for row in unknowns.listing(conn) if row.key.startswith("c")]
                if not doubts:
                    return {"refused": NOTHING}
                job.append(self.rng.choice(doubts).id)
            seen = unknowns.see(conn, app.registry, job[0], horizon=self.horizon)
        told = ACTS[what](self, engine, app.registry, seen)
        return {"job": seen.doubt.key, **told}


Act = Callable[[Desk, Engine, Registry, Seen], dict[str, Any]]


def _live(desk: Desk, engine: Engine, registry: Registry, seen: Seen) -> dict[str, Any]:
    posts, _ = desk.page(seen)
    if not posts:
        return {"refused": "nothing to link to"}
    given = _given(seen, posts[-1])
    return _told(unknowns.decide_live(engine, registry, seen, given, _SIGNED, horizon=desk.horizon))


def _wrong_link(desk: Desk, engine: Engine, registry: Registry, seen: Seen) -> dict[str, Any]:
    _, log = desk.page(seen)
    # What stands in a channel nobody may read, so there only another channel's can be refused.
    is_mute = not seen.can_look
    others = [
        post for post in log.ever_posted
        if post.message.partition(" ")[0] != seen.doubt.key
        and (post.page == seen.channel.remote_id) is not is_mute
    ]  # fmt: skip
    if not others:
        return {"refused": "nothing to link to"}
    given = _given(seen, desk.rng.choice(others))
    unknowns.decide_live(engine, registry, seen, given, _SIGNED, horizon=desk.horizon)
    return {"breach": f"{seen.doubt.key} was bound to another's post, {given}"}


def _attest(desk: Desk, engine: Engine, _registry: Registry, seen: Seen) -> dict[str, Any]:
    posts, _ = desk.page(seen)
    if not posts:
        return {"refused": "nothing to attest"}
    return _told(unknowns.decide_attested(engine, seen, _SIGNED))


def _absent(again: Callable[[Seen], Again | None]) -> Act:
    def act(desk: Desk, engine: Engine, _registry: Registry, seen: Seen) -> dict[str, Any]:
        posts, _ = desk.page(seen)
        if posts:
            return {"refused": "it is there"}
        decision = unknowns.decide_absent(engine, seen, again(seen), _SIGNED, horizon=desk.horizon)
        return _told(decision)

    return act


def _now(seen: Seen) -> Again:
    return Again(seen.channel.name)


def _soon(seen: Seen) -> Again:
    return Again(seen.channel.name, at=seen.doubt.now + timedelta(seconds=0.5))


def _drop(_desk: Desk, engine: Engine, _registry: Registry, seen: Seen) -> dict[str, Any]:
    return _told(unknowns.drop(engine, seen, _SIGNED))


def _look_now(_desk: Desk, engine: Engine, _registry: Registry, seen: Seen) -> dict[str, Any]:
    with engine.begin() as conn:
        unknowns.look_now(conn, seen, who=_SIGNED.who)
    return {}


def _take(desk: Desk, engine: Engine, _registry: Registry, seen: Seen) -> dict[str, Any]:
    with engine.begin() as conn:
        unknowns.take(conn, seen, who=desk.rng.choice(("settler", "colleague")))
    return {}


def _hand_over(_desk: Desk, engine: Engine, _registry: Registry, seen: Seen) -> dict[str, Any]:
    with engine.begin() as conn:
        unknowns.hand_over(conn, seen, to="colleague", note="please", who=_SIGNED.who)
    return {}


def _snooze(desk: Desk, engine: Engine, _registry: Registry, seen: Seen) -> dict[str, Any]:
    until = seen.doubt.now + timedelta(seconds=desk.rng.uniform(0.1, 1.0))
    with engine.begin() as conn:
        unknowns.snooze(conn, seen, until=until, who=_SIGNED.who)
    return {}


def _at_once(people: int) -> Act:
    """Verdicts of so many on what all of them see: one has effect, the others are told of it."""

    def act(desk: Desk, engine: Engine, registry: Registry, seen: Seen) -> dict[str, Any]:
        every = (_live, _attest, _SEND_NOW, _DO_NOT_SEND, _drop, _drop)
        acts = desk.rng.sample(every * people, people)
        return _all_at_once(acts, desk, engine, registry, seen)

    return act


def _all_at_once(
    acts: Sequence[Act], desk: Desk, engine: Engine, registry: Registry, seen: Seen
) -> dict[str, Any]:
    said: list[dict[str, Any]] = []
    start = threading.Barrier(len(acts))

    def decide(act: Act) -> None:
        start.wait()
        try:
            said.append(act(desk, engine, registry, seen))
        except PublisherError as error:
            said.append({"refused": error.code, "act": _NAMES[act]})
        except AWAY as error:
            said.append({"refused": type(error).__name__, "lost": True})

    threads = [threading.Thread(target=decide, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    effects = [told["state"] for told in said if "state" in told]
    if len(effects) > 1:
        return {"breach": f"{seen.doubt.key}: several verdicts had effect, {effects}"}
    others = [f"{told['act']}: {told['refused']}" for told in said if "act" in told]
    return {**({"state": effects[0]} if effects else {"refused": "all"}), "others": others}


def _from_memory(desk: Desk, engine: Engine, _registry: Registry, seen: Seen) -> dict[str, Any]:
    """Have it sent again; once that is in doubt as well, decide by what was seen before."""
    posts, _ = desk.page(seen)
    if posts:
        return {"refused": "it is there"}
    again = _now(seen)
    told = _told(unknowns.decide_absent(engine, seen, again, _SIGNED, horizon=desk.horizon))
    until = time.monotonic() + _REMEMBERED_SECONDS
    while time.monotonic() < until:
        time.sleep(0.1)
        with engine.begin() as conn:
            doubt = next(iter(ledger.doubts(conn, [seen.doubt.job_id])), None)
        if doubt is not None and doubt.latest > seen.doubt.latest:
            unknowns.decide_absent(engine, seen, again, _SIGNED, horizon=desk.horizon)
            return {"breach": f"{seen.doubt.key}: an old look judged a new attempt"}
    return told


def _never(_seen: Seen) -> None:
    return None


_SEND_NOW, _DO_NOT_SEND = _absent(_now), _absent(_never)

ACTS: dict[str, Act] = {
    "live": _live,
    "wrong link": _wrong_link,
    "attest": _attest,
    "absent, send now": _SEND_NOW,
    "absent, send at": _absent(_soon),
    "absent, do not send": _DO_NOT_SEND,
    "drop": _drop,
    "look now": _look_now,
    "take": _take,
    "hand over": _hand_over,
    "snooze": _snooze,
    "two at once": _at_once(2),
    "twenty at once": _at_once(20),
    "from memory": _from_memory,
}
_NAMES = {act: name for name, act in ACTS.items()}
MUST_SAY = {"wrong link": "not-this-post", "from memory": "look-is-old"}
"""Acts of which only a refusal can come, or must have come."""
ALSO_SAID = ("absent, send now: sender-may-be-alive", "drop: already-decided")
"""Refusals that people must have met as well."""


def _told(decision: Decision) -> dict[str, Any]:
    return {"state": str(decision.state)}


def _given(seen: Seen, post: LoggedPost) -> str:
    """What a person would paste for a post."""
    if seen.channel.platform == "telegram":
        return re.sub("_(?=[0-9]+$)", "/", post.id)
    return post.id


def settle(name: str, order: dict[str, Any], events: int) -> int:
    """Do ``times`` things to doubts at moments of one's own choosing.

    ``page``: directory of the platform's own log. ``acts``: what to choose from; all, unset.
    ``waits``: seconds after which nothing in doubt is nothing to stay for.
    """
    settings = Settings(**order["settings"])
    if (variant := order.get("variant")) is not None:
        variants.load("crashes")[variant].patch()
    rng = random.Random(order["chance"])
    desk = Desk(settings, Path(order["page"]), rng, f"crash:{name}:{os.getpid()}")
    acts = order.get("acts") or tuple(ACTS)
    left, until = order["times"], time.monotonic() + order["waits"]
    while left:
        time.sleep(rng.uniform(*_PAUSE))
        said = {"person": name, **desk.act(rng.choice(acts))}
        os.write(events, json.dumps(said).encode() + b"\n")
        if said.get("refused") != NOTHING:
            left -= 1
        elif time.monotonic() > until:
            break
    return 0
