"""What a real run left behind, one JSON-able dict for each job: the journal, and the page's log.

    {"format": 2, "of": "edits 3", "key": "…", "job": 17, "platform": "facebook_pages",
     "final": {"state": "published", "hold": null, "attempts": 2, "claims": 3, "posts": 1},
     "attempts": [{"number": 1, "outcome": "unknown", "reason": "no_answer", "proof": null}, …],
     "moves": [[1733000000.24, "scheduled", "claimed", null], …],
     "seen": [{"at": 1733000000.25, "what": "begin", "attempt": 1, …}, …]}

``final`` and ``attempts`` are how the rows stand at the end. ``moves`` is each change of the job's
state, with the reason on its row: a rehearsal records them (``stage.recorder``), and no other
database does; None there. ``seen`` is everything that can be
seen of the way there, in the order of its times, all of them seconds since 1970 on one machine's
clock. ``what`` is one of ``SEEN``; ``posts`` and what the page did are None and missing where
nobody has the page's own log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from publisher.engine.content import Post
from publisher.rehearsal.stage.recorder import MOVES
from publisher.sandbox.behaviours import Behaviour, Kind
from publisher.sandbox.journal import facts

FORMAT: Final = 2
Trace = dict[str, Any]
Row = dict[str, Any]

SEEN: Final = frozenset({
    "claim", "begin", "settle", "event", "look", "verdict",
    "store", "promise", "know", "refuse", "say nothing",
})  # fmt: skip
IGNORED: Final = frozenset({
    "alert", "take", "hand_over", "snooze", "look_now", "declare_gone", "withdraw",
    "quarantine_look",
})  # fmt: skip
"""Events that move nothing."""
_QUERIES: Final = {
    "jobs": "SELECT j.id, j.state, j.hold_reason, j.attempts, j.claims, j.kind, c.key, c.content,"
    " ch.platform, ch.remote_id AS page FROM publisher.jobs j"
    " JOIN publisher.job_contents c ON c.job_id = j.id"
    " JOIN publisher.channels ch ON ch.id = j.channel_id ORDER BY j.id",
    "attempts": "SELECT * FROM publisher.attempts ORDER BY job_id, number",
    "looks": "SELECT * FROM publisher.looks ORDER BY id",
    "verdicts": "SELECT * FROM publisher.verdicts ORDER BY id",
    "events": "SELECT * FROM publisher.job_events ORDER BY id",
}


def read(
    conn: psycopg.Connection[Any], log: Path | None, *, kind: str = "post", of: str = ""
) -> list[Trace]:
    """Read the traces of every job of this ``kind`` in the database behind ``conn``.

    ``log``: the sandbox's folder, where there was one. ``of``: what they are traces of. Raises
    ``psycopg.Error``.
    """
    tables = {name: _rows(conn, query) for name, query in _QUERIES.items()}
    page = None if log is None else _page(log)
    moves = _rows(conn, MOVES) if _rows(conn, _IS_RECORDED)[0]["is_recorded"] else None
    return [
        {
            "format": FORMAT,
            "of": of,
            **trace_of(job, *(_of(tables[name], job["id"]) for name in list(_QUERIES)[1:]), page),
            "moves": None if moves is None else _moved(_of(moves, job["id"])),
        }
        for job in tables["jobs"]
        if job["kind"] == kind
    ]


_IS_RECORDED: Final = "SELECT to_regclass('rehearsal.moves') IS NOT NULL AS is_recorded"


def _moved(moves: Sequence[Row]) -> list[list[object]]:
    return [
        [_seconds(move["at"]), move["was"], move["became"], move["reason"]]
        for move in moves
        if move["was"] is not None
    ]


def trace_of(
    job: Row,
    attempts: Sequence[Row],
    looks: Sequence[Row],
    verdicts: Sequence[Row],
    events: Sequence[Row],
    page: dict[tuple[str, str], list[Row]] | None,
) -> Trace:
    """Put one job's rows into the form above, without its moves."""
    mark = _mark(Post.from_json(job["content"]).text)
    done = [] if page is None else page.get((job["page"], mark), [])
    seen = [
        *_of_attempts(attempts, events, verdicts),
        *_of_events(events),
        *_of_looks(looks, verdicts),
        *_of_verdicts(verdicts),
        *done,
    ]
    final = {
        "state": job["state"],
        "hold": job["hold_reason"],
        "attempts": job["attempts"],
        "claims": job["claims"],
        "posts": None if page is None else sum(one["what"] == "store" for one in done),
    }
    kept = [
        {name: attempt[name] for name in ("number", "outcome", "reason", "proof")}
        for attempt in attempts
    ]
    return {
        "key": job["key"], "job": job["id"], "platform": job["platform"],
        "final": final, "attempts": kept, "seen": sorted(seen, key=lambda one: one["at"]),
    }  # fmt: skip


def _rows(conn: psycopg.Connection[Any], query: str) -> list[Row]:
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query.encode()).fetchall()


def _of(rows: Iterable[Row], job: int) -> list[Row]:
    return [row for row in rows if row["job_id"] == job]


def _seconds(at: datetime) -> float:
    return at.timestamp()


def _mark(text: str) -> str:
    return text.partition(" ")[0]


def _of_attempts(
    attempts: Sequence[Row], events: Sequence[Row], verdicts: Sequence[Row]
) -> list[Row]:
    """Claim, begin and settle. What somebody else settled is that one's event."""
    found: list[Row] = []
    for attempt in attempts:
        number, run = attempt["number"], attempt["incarnation"]
        begun = {"attempt": number, "run": run}
        found += (
            {"at": _seconds(attempt["claimed_at"]), "what": "claim", **begun},
            {"at": _seconds(attempt["begun_at"]), "what": "begin", **begun},
        )
        theirs = [e for e in events if e["attempt"] == number and e["event"] in _SETTLING]
        if attempt["settled_at"] is None or any(e["detail"]["from"] == "sending" for e in theirs):
            continue
        told = {"outcome": attempt["outcome"], "reason": attempt["reason"]}
        if any(v["decision"] == "live" and v["attempt"] == number for v in verdicts):
            told["outcome"] = "unknown"  # the row was written over when it was found
        settled = {"at": _seconds(attempt["settled_at"]), "what": "settle", **begun}
        found.append({**settled, **({} if theirs else told)})
    return found


_SETTLING: Final = frozenset({"lease_expired", "late_answer", "spool_read"})


def _of_events(events: Sequence[Row]) -> list[Row]:
    return [
        {
            "at": _seconds(event["at"]), "what": "event", "event": event["event"],
            "who": event["who"], "attempt": event["attempt"],
            **{k: event["detail"].get(k) for k in ("from", "to", "outcome")
               if event["detail"].get(k) is not None},
        }
        for event in events
        if event["event"] not in IGNORED
    ]  # fmt: skip


def _of_looks(looks: Sequence[Row], verdicts: Sequence[Row]) -> list[Row]:
    """Looks that ended; the reconciler's last before its own verdict is part of that."""
    found = []
    for look in looks:
        at = _seconds(look["ended_at"])
        judged = any(
            v["who"] == look["by"] and v["attempt"] == look["attempt"]
            and 0 <= _seconds(v["at"]) - at < 1.0
            for v in verdicts
        )  # fmt: skip
        if not judged:
            seen = {"at": at, "what": "look", "who": look["by"], "attempt": look["attempt"]}
            found.append({**seen, "saw": _saw(look["evidence"])})
    return found


def _saw(evidence: Row) -> str:
    match evidence.get("kind"):
        case "Found":
            return "found"
        case "Absent":
            return "absent"
        case _ if evidence.get("clean"):
            return "nothing"
        case _ if evidence.get("candidates"):
            return "like it"
        case _:
            return "unclear"


def _of_verdicts(verdicts: Sequence[Row]) -> list[Row]:
    return [
        {
            "at": _seconds(verdict["at"]), "what": "verdict", "decision": verdict["decision"],
            "who": verdict["who"], "attempt": verdict["attempt"],
            **{k: verdict["detail"][k] for k in ("send", "forced") if k in verdict["detail"]},
        }
        for verdict in verdicts
    ]  # fmt: skip


# The page


def _page(folder: Path) -> dict[tuple[str, str], list[Row]]:
    """What became of each publishing request, by page and by the first word of its text."""
    asked: dict[str, Row] = {}
    ended: dict[str, list[Row]] = defaultdict(list)
    for fact in facts(folder):
        match fact["fact"]:
            case "request" if fact["publishes"]:
                asked[fact["request"]] = fact
            case "stored":
                _note(ended, fact["post"].get("request"), fact["at"], "store", fact["post"])
            case "promised":
                _note(ended, fact["request"], fact["at"], "promise", {})
            case "repeated":
                _note(ended, fact["request"], fact["at"], "know", {})
            case _:
                pass
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for request, fact in asked.items():
        done = ended.get(request) or [_unstored(fact)]
        behaviour = Behaviour.named(fact["behaviour"])
        told = {"request": request, "behaviour": str(behaviour), "kind": str(behaviour.kind)}
        found[fact["page"], _mark(fact["message"])] += ({**one, **told} for one in done)
    return found


def _note(
    ended: dict[str, list[Row]], request: str | None, at: float, what: str, post: Row
) -> None:
    if request is not None and not post.get("foreign") and post.get("is_published", True):
        ended[request].append({"at": at, "what": what})


def _unstored(fact: Row) -> Row:
    kind = Behaviour.named(fact["behaviour"]).kind
    return {"at": fact["at"], "what": "say nothing" if kind is Kind.SILENCE else "refuse"}
