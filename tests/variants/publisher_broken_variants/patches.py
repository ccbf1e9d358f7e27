"""What makes a forked worker one of the broken variants. Never in the product, never in its tests.

Every function patches the process it is called in.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from publisher.engine import ledger, rescue, retry
from publisher.engine import spool as spool_module
from publisher.engine.adapter import SendPermit, boottime
from publisher.engine.ledger import Key, leases
from publisher.engine.outcome import Deferred, Outcome, Proof, Published, Reason, Unknown
from publisher.engine.retry import Settlement
from publisher.engine.spool import Abandoned, Spool
from publisher.engine.worker import hands
from publisher.engine.worker.beginning import Beginning
from publisher.transport import phases, transport
from publisher.transport.phases import End, Phase, Verdict

_LONG = 120.0
Driver = psycopg.Connection[Any]


def nothing() -> None:
    """The fault is in a person's process."""


def rescue_requeues_sending() -> None:
    leases._RESCUE = leases._RESCUE.replace(
        "WHEN w.state = 'sending' THEN 'unknown'", "WHEN w.state = 'sending' THEN 'scheduled'"
    )


_UNFENCED = """
WITH go AS (SELECT * FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[]) AS t(id, token)),
begun AS (
    INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, version, claimed_at)
    SELECT go.id, 1 + (SELECT count(*) FROM attempts a WHERE a.job_id = go.id), go.token, 1,
           c.content_sha256, c.version, clock_timestamp()
      FROM go JOIN job_contents c ON c.job_id = go.id
    RETURNING job_id, token, number, content_sha256),
moved AS (
    UPDATE jobs j SET state = 'sending', attempts = b.number, hand_at = NULL,
           lease_until = clock_timestamp() + make_interval(secs => %(lease)s)
      FROM begun b WHERE j.id = b.job_id AND j.token = b.token)
SELECT b.job_id, b.token, b.number, j.channel_id, b.content_sha256
  FROM begun b JOIN jobs j ON j.id = b.job_id
"""


def begin_without_the_fence() -> None:
    def begin_send(
        conn: Driver, held: Sequence[Key], *, lease: float, window: float, budget: float
    ) -> dict[Any, SendPermit]:
        keys = {"ids": [i for i, _ in held], "tokens": [t for _, t in held], "lease": lease}
        rows = conn.execute(_UNFENCED, keys).fetchall()
        return {row[0]: _permit(row, window, budget) for row in rows}

    ledger.begin_send = begin_send


def _permit(row: Sequence[Any], window: float, budget: float) -> SendPermit:
    return SendPermit(
        job_id=row[0], token=row[1], attempt=row[2], channel_id=row[3],
        content_sha256=bytes(row[4]), deadline=boottime() + window, budget=budget,
    )  # fmt: skip


_UNRECORDED = """
SELECT j.id, j.token, j.attempts + 1, j.channel_id, c.content_sha256
  FROM jobs j JOIN job_contents c ON c.job_id = j.id
 WHERE j.id = ANY(%s) AND j.token = ANY(%s) AND j.state = 'claimed'
"""


def send_before_begin_commits() -> None:
    """The record, in the database and on disk, is made when the answer is there."""
    real_begin, real_settle = ledger.begin_send, ledger.settle
    unrecorded: dict[Key, dict[str, float]] = {}

    def begin_send(conn: Driver, held: Sequence[Key], **times: float) -> dict[Any, SendPermit]:
        rows = conn.execute(_UNRECORDED, [[i for i, _ in held], [t for _, t in held]]).fetchall()
        unrecorded.update({(row[0], row[1]): times for row in rows})
        return {row[0]: _permit(row, times["window"], times["budget"]) for row in rows}

    def settle(conn: Driver, ends: Mapping[Key, Settlement]) -> ledger.Settled:
        for key in [key for key in ends if key in unrecorded]:
            real_begin(conn, [key], **unrecorded.pop(key))
        return real_settle(conn, ends)

    ledger.begin_send, ledger.settle = begin_send, settle
    Spool.open = lambda *_: None  # type: ignore[method-assign]
    Spool.start = lambda *_: None  # type: ignore[method-assign]


def timeout_read_as_failure() -> None:
    _judge_as_failed(lambda end, _status: end is End.TIME_UP)


def server_error_read_as_failure() -> None:
    _judge_as_failed(lambda _end, status: status is not None and status >= 500)


def _judge_as_failed(wrongly: Any) -> None:  # noqa: ANN401 - a predicate
    real = phases.judge

    def judge(phase: Phase, end: End, status: int | None) -> phases.Row:
        row = real(phase, end, status)
        if phase is not Phase.CONNECTING and wrongly(end, status):
            return replace(row, verdict=Verdict.DEFERRED, reason=Reason.BUSY)
        return row

    transport.judge = judge  # type: ignore[attr-defined]
    hands._believable = lambda outcome, permit: outcome  # noqa: ARG005 - as the real one


_FREE_LATEST = """
WITH freed AS (
    UPDATE attempts a SET settled_at = clock_timestamp(), outcome = 'deferred',
           reason = 'not_started', proof = 'not_sent', proved_by = 'broken',
           proved_at = clock_timestamp()
      FROM jobs j
     WHERE a.job_id = %(id)s AND j.id = a.job_id AND a.number = j.attempts AND a.proof IS NULL
       AND a.outcome IS DISTINCT FROM 'published' AND j.state IN ('sending', 'unknown')
       AND (%(number)s::integer IS NULL OR a.number = %(number)s)
    RETURNING a.job_id)
UPDATE jobs j SET state = 'scheduled', token = NULL, incarnation = NULL, claimed_at = NULL,
       hand_at = NULL, lease_until = NULL, settled_at = NULL, run_at = clock_timestamp()
  FROM freed f WHERE j.id = f.job_id
"""


def late_not_sent_unfenced() -> None:
    """A late "not sent" frees whatever attempt the job has now."""
    _free_by(lambda _key: None)


def fence_by_number() -> None:
    """A late "not sent" frees the attempt of the number its worker would have given it."""
    real, numbers = ledger.claim, {}

    def claim(*arguments: Any, **named: Any) -> ledger.Claim:  # noqa: ANN401 - as the real one
        claimed = real(*arguments, **named)
        numbers.update({(job.id, job.token): job.attempts + 1 for job in claimed.jobs})
        return claimed

    ledger.claim = claim
    _free_by(lambda key: numbers.get(key, 0))


def _free_by(number: Any) -> None:  # noqa: ANN401 - key → attempt number, None for any
    real = ledger.settle

    def settle(conn: Driver, ends: Mapping[Key, Settlement]) -> ledger.Settled:
        settled = real(conn, ends)
        for key in settled.stale:
            if ends[key].proof is Proof.NOT_SENT:
                conn.execute(_FREE_LATEST, {"id": key[0], "number": number(key)})
        return settled

    ledger.settle = settle


def lost_acknowledgement_then_sends() -> None:
    def begin(self: Beginning, conn: Driver) -> bool:
        batch = self._take_ready()
        if not batch:
            return False
        timing = self.station.timing
        try:
            permits = ledger.begin_send(
                conn, [held.key for held, _ in batch], lease=timing.publish_lease,
                window=timing.distrust, budget=timing.publish_timeout,
            )  # fmt: skip
        except psycopg.Error:
            permits = {
                held.id: SendPermit(
                    job_id=held.id, token=held.job.token, attempt=held.job.attempts + 1,
                    channel_id=held.channel.id, content_sha256=bytes(held.job.content_sha256),
                    deadline=boottime() + timing.distrust, budget=timing.publish_timeout,
                )
                for held, _ in batch
            }  # fmt: skip
        return self._hand_over(conn, batch, permits)

    Beginning.begin = begin  # type: ignore[method-assign]


def late_published_ignored() -> None:
    real = ledger.record_late

    def record_late(*arguments: Any, **named: Any) -> ledger.Late:  # noqa: ANN401 - as the real one
        if arguments[3].outcome == "published":
            return ledger.Late.KNOWN
        return real(*arguments, **named)

    ledger.record_late = record_late


def spool_says_not_started() -> None:
    def outcome(record: Any, attempt: Any, trace: Any, *, rebooted: bool) -> Outcome:  # noqa: ANN401 - as the real one
        return Deferred(Reason.NOT_STARTED, "the worker ended before it called the platform")

    rescue._outcome = outcome


def permits_do_not_lapse() -> None:
    """The other guard of a process that was frozen before it sent."""
    real = ledger.begin_send

    def begin_send(*arguments: Any, **times: float) -> dict[Any, SendPermit]:  # noqa: ANN401 - as the real one
        return real(*arguments, **(times | {"window": _LONG, "budget": _LONG}))

    ledger.begin_send = begin_send


def file_read_without_its_lock() -> None:
    permits_do_not_lapse()

    def take(path: Path) -> Abandoned | None:
        with contextlib.suppress(OSError):
            return Abandoned(path, os.open(path, os.O_RDWR | os.O_CLOEXEC))
        return None

    spool_module.Abandoned.take = take  # type: ignore[method-assign]


def answer_without_an_id_believed() -> None:
    real = retry.settle

    def settle(outcome: Outcome, *arguments: Any) -> Settlement:  # noqa: ANN401 - as the real one
        if isinstance(outcome, Unknown) and outcome.reason is Reason.NO_ID:
            outcome = Published(f"no_id_{os.getpid()}_{boottime():.3f}")
        return real(outcome, *arguments)

    retry.settle = settle  # type: ignore[assignment]


def nobody_rescues_a_claim() -> None:
    ledger.rescue = lambda *_, **__: ()
    ledger.forsake = lambda *_, **__: ()
