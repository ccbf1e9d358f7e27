"""From what a person types to the one job it names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import BigInteger, Connection, Text, column, func, literal, or_, select, table

from publisher.engine.errors import NotFound, PublisherError
from publisher.engine.job import JobId, congruence, public_id
from publisher.engine.schema import SCHEMA, job_keys, jobs

posts = table("posts", column("id", BigInteger), column("ref", Text), schema=SCHEMA)
"""Editorial's table, as far as a job's name needs it."""

SHORTEST: Final = 4
"""Digits of a short id; lists never show fewer."""
_FULL: Final = len(public_id(1))
_SHOWN: Final = 6
"""Candidates an ambiguous name is answered with, at most."""


class AmbiguousJob(PublisherError):
    """A prefix or ref that more than one job answers to; carries them."""

    code = "ambiguous-job"

    def __init__(self, text: str, candidates: Sequence[tuple[JobId, str]], *, more: bool) -> None:
        listed = ", ".join(f"{public_id(number)} ({key})" for number, key in candidates)
        tail = ", and more" if more else ""
        super().__init__(
            f"{text!r} names more than one job: {listed}{tail}. Give more of the id, or the key."
        )
        self.candidates = tuple(number for number, _ in candidates)


class UnknownJob(NotFound):
    """No job by that id, key or ref."""

    code = "job-not-found"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"There is no job {text!r}: no id starts with it, and it is neither a key nor a"
            " post's ref. `publisher jobs list` shows what there is."
        )


def find_job(conn: Connection, text: str) -> JobId:
    """The job that ``text`` names: its key, its id, a unique prefix of that, or its post's ref.

    A key or a full id is exact and wins. A ref wins over a prefix shorter than any list shows;
    where it equals a longer prefix of another job, neither is guessed. A ref whose post has
    several jobs is ambiguous, too. Raises ``UnknownJob`` or ``AmbiguousJob`` with the candidates.
    """
    text = text.strip()
    by_key = conn.scalar(select(job_keys.c.job_id).where(job_keys.c.key == text))
    if by_key is not None:
        return JobId(by_key)
    by_prefix = _by_prefix(conn, text)
    if len(text) == _FULL and len(by_prefix) == 1:
        return by_prefix[0]
    by_ref = _by_ref(conn, text)
    if by_ref and len(text) < SHORTEST:
        by_prefix = []
    found = list(dict.fromkeys([*by_ref, *by_prefix]))
    if not found:
        raise UnknownJob(text)
    if len(found) > 1:
        shown = _with_keys(conn, found[:_SHOWN])
        raise AmbiguousJob(text, shown, more=len(found) > _SHOWN)
    return found[0]


def id_digits(conn: Connection) -> int:
    """How many digits tell every job's public id from every other's, four at least.

    Row numbers count up from 1, and d digits tell 16**d consecutive ones apart (``job.public_id``),
    so the highest number answers without a look at any other row.
    """
    highest = conn.scalar(select(func.max(jobs.c.id))) or 0
    digits = SHORTEST
    while 16**digits <= highest:
        digits += 1
    return digits


def _by_prefix(conn: Connection, text: str) -> list[JobId]:
    rule = congruence(text)
    if rule is None:
        return []
    remainder, modulus = rule
    highest = conn.scalar(select(func.max(jobs.c.id))) or 0
    if remainder > highest:
        return []
    # Steps through the numbers that can match rather than through the table.
    bounds = (literal(bound, BigInteger) for bound in (remainder, highest, modulus))
    numbers = func.generate_series(*bounds).table_valued("n").render_derived()
    query = select(jobs.c.id).select_from(numbers.join(jobs, jobs.c.id == numbers.c.n))
    return [JobId(found) for found in conn.scalars(query.limit(_SHOWN + 1))]


def _by_ref(conn: Connection, text: str) -> list[JobId]:
    query = (
        select(jobs.c.id)
        .join(posts, posts.c.id == jobs.c.post_id)
        .where(posts.c.ref == text)
        .order_by(jobs.c.id)
        .limit(_SHOWN + 1)
    )
    return [JobId(found) for found in conn.scalars(query)]


def _with_keys(conn: Connection, found: Sequence[JobId]) -> list[tuple[JobId, str]]:
    query = select(job_keys.c.job_id, job_keys.c.key).where(
        or_(*(job_keys.c.job_id == number for number in found))
    )
    keys = {row.job_id: row.key for row in conn.execute(query)}
    return [(number, keys.get(number, "")) for number in found]
