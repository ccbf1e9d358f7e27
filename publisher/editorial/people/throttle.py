"""How often somebody may try: per account and per address, counted in the database.

A try is counted before it is made, as if it would fail, so that tries at the same moment cannot
exceed what is allowed. What is right is taken back: the account's count whole, the address's by
that one try, or whoever has one password could guess others' for ever.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Interval,
    case,
    delete,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from publisher.editorial.people.schema import login_failures
from publisher.engine.errors import PublisherError
from publisher.words import _

FORGOTTEN_AFTER: Final = timedelta(days=1)
"""Without a try for so long, counting begins anew."""
FIRST: Final = timedelta(seconds=10)
"""The first wait; each further try doubles it."""
LONGEST: Final = timedelta(minutes=15)
_DOUBLINGS: Final = 20
_SWEPT: Final = 50


class Throttled(PublisherError):
    """Too many tries; ``seconds`` is how long to wait. 429."""

    code = "too-many-tries"
    exit_code = 4

    def __init__(self, seconds: int) -> None:
        super().__init__(_("Too many tries. Wait {n} s.").format(n=seconds))
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Door:
    """Something that is tried: an account, or an address that tries. ``free`` tries cost nothing.

    An office signs in from one address, so an address has more of them.
    """

    key: str
    free: int
    is_account: bool


@dataclass(frozen=True, slots=True)
class Counted:
    """One try that was counted at one door, to be taken back if it was right."""

    door: Door
    locked_until: datetime | None


def account(compared: str) -> Door:
    """The account with that address, whether there is one or not.

    ``compared``: as the database compares addresses. What it takes for one must be one door.
    """
    return Door(f"account:{_hash(compared)}", free=5, is_account=True)


def second_factor(user_id: int) -> Door:
    """The codes of a person whose password was right."""
    return Door(f"code:{user_id}", free=5, is_account=True)


def address(given: str | None) -> tuple[Door, ...]:
    """The address that tries; of IPv6 the first 64 bits, for who has one has them all."""
    if given is None:
        return ()
    try:
        ip = ipaddress.ip_address(given)
    except ValueError:
        return (Door(f"address:{_hash(given)}", free=20, is_account=False),)
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip
    prefix = 64 if isinstance(ip, ipaddress.IPv6Address) else 32
    network = ipaddress.ip_network((ip, prefix), strict=False)
    return (Door(f"address:{network}", free=20, is_account=False),)


def count(conn: Connection, doors: Iterable[Door]) -> tuple[Counted, ...]:
    """Count one try at each door, to be committed before it is made.

    Raises ``Throttled`` where one is shut; the transaction must be rolled back then, so that
    knocking at it counts nowhere.
    """
    # In one order, or two that try at once could wait for each other.
    return tuple(_count(conn, door) for door in sorted(doors, key=lambda door: door.key))


def take_back(conn: Connection, counted: Iterable[Counted]) -> None:
    """The try was right: forget the account's failures, and at an address this try alone."""
    for one in sorted(counted, key=lambda counted: counted.door.key):
        if one.door.is_account:
            conn.execute(delete(login_failures).where(login_failures.c.key == one.door.key))
            continue
        is_ours = login_failures.c.locked_until.is_not_distinct_from(one.locked_until)
        conn.execute(
            update(login_failures)
            .where(login_failures.c.key == one.door.key)
            .values(
                count=func.greatest(login_failures.c.count - 1, 0),
                locked_until=case((is_ours, None), else_=login_failures.c.locked_until),
            )
        )


def forget(conn: Connection, door: Door) -> None:
    """Open a door that was shut, as a new password does."""
    conn.execute(delete(login_failures).where(login_failures.c.key == door.key))


def sweep(conn: Connection) -> None:
    """Drop a few counts that mean nothing any more."""
    old = (
        select(login_failures.c.key)
        .where(login_failures.c.last_at < func.clock_timestamp() - FORGOTTEN_AFTER)
        .limit(_SWEPT)
        .with_for_update(skip_locked=True)
    )
    conn.execute(delete(login_failures).where(login_failures.c.key.in_(old.scalar_subquery())))


def _count(conn: Connection, door: Door) -> Counted:
    now = func.clock_timestamp()
    is_old = login_failures.c.last_at < now - FORGOTTEN_AFTER
    tried = case((is_old, 1), else_=login_failures.c.count + 1)
    adding = insert(login_failures).values(key=door.key, count=1, last_at=now)
    row = conn.execute(
        adding.on_conflict_do_update(
            index_elements=[login_failures.c.key],
            set_={
                "count": tried,
                "last_at": now,
                "locked_until": case((tried >= door.free, now + _wait(tried, door.free))),
            },
            where=or_(
                login_failures.c.locked_until.is_(None), login_failures.c.locked_until <= now
            ),
        ).returning(login_failures.c.locked_until)
    ).first()
    if row is not None:
        return Counted(door, row.locked_until)
    raise Throttled(_seconds_left(conn, door))


def _wait(tried: ColumnElement[int], free: int) -> ColumnElement[timedelta]:
    """``FIRST`` after the last free try, then twice as long each time."""
    doubled = FIRST.total_seconds() * func.power(2, func.least(tried - free, _DOUBLINGS))
    seconds = func.least(doubled, LONGEST.total_seconds())
    return func.make_interval(0, 0, 0, 0, 0, 0, seconds, type_=Interval())


def _seconds_left(conn: Connection, door: Door) -> int:
    left = conn.scalar(
        select(func.extract("epoch", login_failures.c.locked_until - func.clock_timestamp())).where(
            login_failures.c.key == door.key
        )
    )
    return max(1, math.ceil(left or 0))


def _hash(typed: str) -> str:
    return hashlib.sha256(typed.encode(errors="surrogatepass")).hexdigest()
