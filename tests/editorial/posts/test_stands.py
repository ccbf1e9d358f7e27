"""Who approves, under what an approval or an older version stands, and what a version is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from publisher.engine.ledger.of_post import lock_jobs_of
from tests.editorial.posts.conftest import Desk
from tests.editorial.posts.shelf import VARIANT, Shelf
from tests.engine.ground import Ground

WRITTEN, APPROVED = "written", "approved"


@pytest.fixture
def shelf(ground: Ground) -> Iterator[Shelf]:
    with ground.root.transaction(force_rollback=True):
        yield Shelf(ground.root)


# Who approves

APPROVE = "INSERT INTO approvals (version_id, approved_by, approver_id) VALUES (%s, %s, %s)"
TAKE_OVER = "UPDATE approvals SET approved_by = %s, approver_id = %s WHERE version_id = %s"


@pytest.mark.parametrize("by", ["insert", "update"])
@pytest.mark.parametrize(
    ("author", "approver", "is_refused"),
    [
        # Each by name and, where it is known, by account.
        (("Ann", None), ("Ann", None), True),
        (("Ann", None), ("Bea", None), False),
        (("Ann", "ann"), ("Ann B.", "ann"), True),
        (("Ann", "ann"), ("Ann", "bea"), False),
        (("Ann", "ann"), ("Ann", None), True),
        (("Ann", None), ("Ann", "ann"), True),
        (("Ann", "ann"), ("Bea", None), False),
        (("Ann", None), ("Bea", "bea"), False),
    ],
)
def test_somebody_else_than_the_author_approves(
    shelf: Shelf,
    author: tuple[str, str | None],
    approver: tuple[str, str | None],
    by: str,
    *,
    is_refused: bool,
) -> None:
    users = {name: shelf.user(name) for name in ("ann", "bea")}

    def written(slug: str, name: str, account: str | None, *, by_other: bool) -> int:
        post = shelf.post(shelf.workspace(slug, by_other=by_other), WRITTEN)
        return shelf.put(
            "UPDATE post_versions SET created_by = %s, author_id = %s WHERE post_id = %s",
            name, users.get(account or ""), post,
        )  # fmt: skip

    written("there", "Bea", None, by_other=True)
    version = written("here", *author, by_other=True)
    name, account = approver[0], users.get(approver[1] or "")
    if by == "update":
        shelf.put("INSERT INTO approvals (version_id, approved_by) VALUES (%s, 'root')", version)

    def values(of: int) -> tuple[object, ...]:
        return (name, account, of) if by == "update" else (of, name, account)

    statement = TAKE_OVER if by == "update" else APPROVE
    if is_refused:
        assert shelf.refusal(statement, *values(version)) == "PB052"
        shelf.put("UPDATE workspaces SET approval_by_other = false WHERE slug = 'here'")
    assert shelf.do(statement, *values(version)) == 1


# An approval is withdrawn, or a newer version written, under a job

WITHDRAW = (
    "UPDATE approvals SET withdrawn_at = clock_timestamp(), withdrawn_by = 'me'"
    " WHERE version_id = %s"
)
UNDER = [
    ("claimed", None, True),
    ("scheduled", None, True),
    ("scheduled", "person", False),
    ("sending", None, False),
    ("unknown", None, False),
    ("published", None, False),
    ("failed", None, False),
]


@pytest.mark.parametrize(("state", "why", "is_refused"), UNDER)
def test_no_approval_is_withdrawn_under_what_goes_by_it(
    shelf: Shelf, state: str, why: str | None, *, is_refused: bool
) -> None:
    here = shelf.workspace("here")
    page = shelf.channel(here)
    shelf.goes(shelf.post(here, APPROVED), page, "claimed")
    post = shelf.post(here, APPROVED, APPROVED)
    shelf.goes(post, page, state, hold=why)
    shelf.goes(post, shelf.channel(here), "claimed", number=2)
    version = shelf.version(post)
    if is_refused:
        assert shelf.refusal(WITHDRAW, version) == "PB053"
    else:
        assert shelf.do(WITHDRAW, version) == 1


WRITE = (
    "INSERT INTO post_versions (post_id, number, content, content_sha256, created_by)"
    " VALUES (%s, 2, 'y', sha256('y'), 'writer')"
)


@pytest.mark.parametrize(("state", "why", "is_refused"), UNDER)
@pytest.mark.parametrize("rule", ["hold", "keep"])
def test_no_version_is_written_under_what_goes_by_the_older(
    shelf: Shelf, state: str, why: str | None, rule: str, *, is_refused: bool
) -> None:
    here = shelf.workspace("here", rule=rule)
    page = shelf.channel(here)
    shelf.goes(shelf.post(here, APPROVED, APPROVED), page, "claimed")
    post = shelf.post(here, APPROVED)
    shelf.goes(post, page, state, hold=why)
    if is_refused and rule == "hold":
        assert shelf.refusal(WRITE, post) == "PB053"
    else:
        assert shelf.do(WRITE, post) == 1


# What a version is

WHOLE = "SELECT version_sha256(%s)"


def test_a_version_is_whole_with_its_own_variants_alone(shelf: Shelf) -> None:
    here, there = shelf.workspace("here"), shelf.workspace("there")
    page, far = shelf.channel(here), shelf.channel(there)
    elsewhere = shelf.version(shelf.post(there, WRITTEN))
    plain = shelf.one(WHOLE, elsewhere)
    assert plain == shelf.one("SELECT sha256(sha256('x') || sha256(''))")
    shelf.variant(elsewhere, far, "z")
    mixed = shelf.version(shelf.post(here, WRITTEN))
    shelf.variant(mixed, far, "z")
    version = shelf.version(shelf.post(here, WRITTEN))
    assert shelf.one(WHOLE, version) == plain
    assert shelf.refusal(VARIANT, version, page, "own", "own") == "PB054"
    whole = shelf.one(
        "SELECT sha256(sha256('x') || sha256('') || int4send(%s) || sha256('own') || sha256(''))",
        page,
    )
    shelf.put("UPDATE post_versions SET whole_sha256 = %s WHERE id = %s", whole, version)
    assert shelf.do(VARIANT, version, page, "own", "own") == 1


def test_no_variant_is_for_a_page_of_another_workspace(shelf: Shelf) -> None:
    here, there = shelf.workspace("here"), shelf.workspace("there")
    far = shelf.channel(there)
    version = shelf.version(shelf.post(here, WRITTEN))
    whole = shelf.one(
        "SELECT sha256(sha256('x') || sha256('') || int4send(%s) || sha256('own') || sha256(''))",
        far,
    )
    shelf.put("UPDATE post_versions SET whole_sha256 = %s WHERE id = %s", whole, version)
    assert shelf.refusal(VARIANT, version, far, "own", "own") == "PB040"


@pytest.mark.parametrize("part", ["whole_sha256", "first_comment"])
def test_a_version_without_variants_is_what_its_hash_says(shelf: Shelf, part: str) -> None:
    post = shelf.post(shelf.workspace("here"), WRITTEN)
    value = "sha256('y')" if part == "whole_sha256" else "'First!'"
    insert = (
        f"INSERT INTO post_versions (post_id, number, content, content_sha256, created_by, {part})"
        f" VALUES (%s, 2, 'y', sha256('y'), 'me', {value})"
    )
    assert shelf.refusal(insert, post) == "PB054"


# The lock on a post's jobs


def test_the_jobs_of_one_post_are_locked_and_no_others(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    _, (other,) = desk.out(page)
    free = "SELECT id FROM jobs WHERE id = ANY(%s) FOR UPDATE SKIP LOCKED"
    with desk.transaction() as conn:
        assert lock_jobs_of(conn, post) == (job,)
        assert [row["id"] for row in desk.ground.sql(free, [job, other])] == [other]
