"""What the database lets go, asked of rows beside others of which everything is otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from publisher.engine.job import Hold
from tests.editorial.posts.conftest import Desk
from tests.editorial.posts.shelf import CONTENT, Shelf, content_of
from tests.engine.ground import Ground, published

GONE, EDITED, STANDS = str(Hold.APPROVAL), str(Hold.EDITED), str(Hold.LIVE)


@pytest.fixture
def shelf(ground: Ground) -> Iterator[Shelf]:
    with ground.root.transaction(force_rollback=True):
        yield Shelf(ground.root)


def hold(shelf: Shelf, job: int, post: int) -> str | None:
    """Why the job may not go, as the database sees it."""
    found: str | None = shelf.one("SELECT approval_hold(%s, %s)", job, post)
    return found


WRITTEN, APPROVED, WITHDRAWN = "written", "approved", "withdrawn"

# Rule, what became of the versions, by which of them the job goes, and why it may not.
HOLDS: list[tuple[str, tuple[str, ...], int, str | None]] = [
    ("hold", (APPROVED,), 1, None),
    ("keep", (APPROVED,), 1, None),
    ("hold", (WRITTEN,), 1, GONE),
    ("hold", (WITHDRAWN,), 1, GONE),
    ("keep", (WITHDRAWN,), 1, GONE),
    ("hold", (APPROVED, WRITTEN), 1, EDITED),
    ("keep", (APPROVED, WRITTEN), 1, None),
    ("keep", (APPROVED, WITHDRAWN), 1, None),
    ("keep", (APPROVED, APPROVED), 1, EDITED),
    ("hold", (APPROVED, APPROVED), 2, None),
    ("keep", (APPROVED, APPROVED), 2, None),
    ("hold", (WRITTEN, APPROVED), 2, None),
]


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize(("rule", "versions", "number", "why"), HOLDS)
def test_what_a_job_waits_for(
    shelf: Shelf, rule: str, versions: tuple[str, ...], number: int, why: str | None, where: str
) -> None:
    """``where``: the other workspace, its posts and their jobs, are there before ours or after."""

    def others() -> None:
        """They have the other rule; of what goes by them one may go and the other may not."""
        there = shelf.workspace("there", rule="keep" if rule == "hold" else "hold")
        page = shelf.channel(there)
        shelf.goes(shelf.post(there, WITHDRAWN, APPROVED, WRITTEN, trashed=True), page)
        shelf.goes(shelf.post(there, APPROVED), page)

    if where == "before":
        others()
    here = shelf.workspace("here", rule=rule)
    post = shelf.post(here, *versions)
    job = shelf.goes(post, shelf.channel(here), number=number)
    if where == "after":
        others()
    assert hold(shelf, job, post) == why


def test_nothing_of_the_trash_goes(shelf: Shelf) -> None:
    here = shelf.workspace("here")
    post = shelf.post(here, APPROVED, trashed=True)
    assert hold(shelf, shelf.goes(post, shelf.channel(here)), post) == GONE


@pytest.mark.parametrize(
    ("proofs", "why"),
    [
        ((), EDITED),
        (("absent",), EDITED),
        (("refused",), EDITED),
        ((None,), EDITED),
        (("repeat_safe",), None),
        (("forced",), None),
        (("forced", "absent"), None),
    ],
)
def test_what_may_be_live_goes_on_in_its_version(
    shelf: Shelf, proofs: tuple[str | None, ...], why: str | None
) -> None:
    here = shelf.workspace("here")
    page = shelf.channel(here)
    shelf.attempt(shelf.goes(shelf.post(here, APPROVED), page), "forced")
    post = shelf.post(here, APPROVED, WRITTEN)
    job = shelf.goes(post, page)
    for number, proof in enumerate(proofs, 1):
        shelf.attempt(job, proof, number)
    assert hold(shelf, job, post) == why


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("newer", EDITED),
        ("newer and live", STANDS),
        ("cancelled", None),
        ("older", None),
        ("older and live", STANDS),
        ("of another page", None),
        ("of another kind", None),
        ("of another post", None),
    ],
)
def test_what_took_its_place_goes_instead(shelf: Shelf, other: str, why: str | None) -> None:
    here = shelf.workspace("here")
    page = shelf.channel(here)
    post, beside = shelf.post(here, APPROVED), shelf.post(here, APPROVED)
    # One that was replaced; it is not this one.
    shelf.goes(beside, page, "cancelled")
    shelf.goes(beside, page, "published")
    if other.startswith("older"):
        shelf.goes(post, page, "published" if other.endswith("live") else "failed")
    job = shelf.goes(post, page, "failed")
    match other:
        case "newer":
            shelf.goes(post, page, "failed")
        case "newer and live":
            shelf.goes(post, page, "published")
        case "cancelled":
            shelf.goes(post, page, "cancelled")
        case "of another page":
            shelf.goes(post, shelf.channel(here), "published")
        case "of another kind":
            shelf.job(post, page, "published", kind="comment")
        case "of another post":
            shelf.goes(shelf.post(here, APPROVED), page, "published")
    assert hold(shelf, job, post) == why


def test_what_goes_by_no_version_waits_for_none(shelf: Shelf) -> None:
    here = shelf.workspace("here")
    post = shelf.post(here, WRITTEN)
    job = shelf.job(post, shelf.channel(here))
    shelf.content(job, None, None)
    assert hold(shelf, job, post) is None


# However a job comes back


def test_a_person_s_hold_stays_until_it_is_taken_off(shelf: Shelf) -> None:
    here = shelf.workspace("here")
    job = shelf.goes(shelf.post(here, APPROVED), shelf.channel(here), hold="person")
    assert shelf.do("UPDATE jobs SET run_at = now() WHERE id = %s", job) == 1
    assert shelf.one("SELECT hold_reason FROM jobs WHERE id = %s", job) == "person"


def test_what_is_free_already_is_not_asked_again(shelf: Shelf) -> None:
    """The rule became another since: that is for edits from then on."""
    here = shelf.workspace("here", rule="hold")
    job = shelf.goes(shelf.post(here, APPROVED, WRITTEN), shelf.channel(here))
    assert shelf.do("UPDATE jobs SET run_at = now() WHERE id = %s", job) == 1
    assert shelf.one("SELECT hold_reason FROM jobs WHERE id = %s", job) is None


def test_an_edit_beside_a_send_is_nothing_to_its_end(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    held = desk.sending(page, job)
    desk.save(post, "Better")
    assert page.end(held, published(f"remote {job}")).done
    assert (desk.job(job)["state"], desk.job(job)["hold_reason"]) == ("published", None)


# What its journal tells of a hold

HOLD = "UPDATE jobs SET hold_reason = %s WHERE id = %s"
TELL = "INSERT INTO job_events (job_id, event, who, at) VALUES (%s, %s, 'me', {})"
TOLD = TELL.format("clock_timestamp()")


def told(shelf: Shelf, job: int) -> list[tuple[str, str]]:
    """What the journal has, and who says so, after everything of the transaction is done."""
    shelf.do("SELECT")
    query = b"SELECT event, who FROM job_events WHERE job_id = %s ORDER BY at, id"
    return shelf.root.execute(query, [job]).fetchall()


@pytest.fixture
def waiting(shelf: Shelf) -> tuple[int, int]:
    """Two jobs that wait and may go."""
    here = shelf.workspace("here")
    page = shelf.channel(here)
    one, other = (shelf.goes(shelf.post(here, APPROVED), page) for _ in range(2))
    shelf.root.execute("SET LOCAL session_replication_role = origin")
    return one, other


def test_a_hold_that_nobody_told_is_told(shelf: Shelf, waiting: tuple[int, int]) -> None:
    job, other = waiting
    shelf.root.execute(TELL.format("now() - interval '1 hour'"), [job, "hold"])
    for each in waiting:
        shelf.root.execute(HOLD, [EDITED, each])
    shelf.root.execute(TOLD, [other, "hold"])
    assert told(shelf, job) == [("hold", "me"), ("hold", "publisher")]
    assert told(shelf, other) == [("hold", "me")]


def test_a_hold_that_was_told_is_told_once(shelf: Shelf, waiting: tuple[int, int]) -> None:
    job, _ = waiting
    shelf.root.execute(HOLD, [EDITED, job])
    for event in ("release_hold", "hold", "reschedule"):
        shelf.root.execute(TOLD, [job, event])
    assert told(shelf, job) == [("release_hold", "me"), ("hold", "me"), ("reschedule", "me")]


def test_a_hold_that_was_taken_off_again_is_not_told(
    shelf: Shelf, waiting: tuple[int, int]
) -> None:
    job, _ = waiting
    shelf.root.execute(HOLD, [EDITED, job])
    shelf.root.execute(HOLD, ["person", job])
    assert told(shelf, job) == []


def test_a_hold_is_told_when_it_begins(shelf: Shelf, waiting: tuple[int, int]) -> None:
    job, _ = waiting
    shelf.put(f"{HOLD.replace('%s', repr(EDITED), 1)}", job)
    assert shelf.do("UPDATE jobs SET run_at = now() WHERE id = %s", job) == 1
    assert told(shelf, job) == []


# What a job sends

OTHER_BYTES, NOT_APPROVED = "PB050", "PB051"
ANEW = (
    "UPDATE job_contents SET version_id = %s, version = %s, content = %s,"
    " content_sha256 = sha256(%s::bytea) WHERE job_id = %s"
)


@pytest.mark.parametrize(
    ("case", "refusal"),
    [
        ("its own", None),
        ("its own, for this page", None),
        ("of no version", None),
        ("of another post", OTHER_BYTES),
        ("of another number", OTHER_BYTES),
        ("other bytes", OTHER_BYTES),
        ("for all, not for this page", OTHER_BYTES),
        ("for another page", OTHER_BYTES),
        ("in the trash", NOT_APPROVED),
        ("not approved", NOT_APPROVED),
        ("withdrawn", NOT_APPROVED),
    ],
)
@pytest.mark.parametrize("by", ["insert", "update"])
def test_what_a_job_takes_to_send(shelf: Shelf, case: str, refusal: str | None, by: str) -> None:
    here = shelf.workspace("here")
    page, other_page = shelf.channel(here), shelf.channel(here)
    there = shelf.post(here, APPROVED)
    shelf.variant(shelf.version(there), page, "z")
    shelf.goes(shelf.post(here, APPROVED, trashed=True), page)
    approval = {"not approved": WRITTEN, "withdrawn": WITHDRAWN}.get(case, APPROVED)
    post = shelf.post(here, WRITTEN, approval, APPROVED, trashed=case == "in the trash")
    version, number, text = shelf.version(post, 2), 2, "x"
    shelf.variant(version, other_page, "y")
    if "this page" in case:
        shelf.variant(version, page, "own")
    match case:
        case "its own, for this page":
            text = "own"
        case "of another post":
            version, number = shelf.version(shelf.post(here, APPROVED)), 1
        case "of another number":
            number = 3
        case "other bytes":
            text = "w"
        case "for another page":
            text = "y"
    job = shelf.job(post, page)
    values = content_of(job, version, number, text)
    if case == "of no version":
        values = content_of(job, None, None, "w")
    insert, update = CONTENT, ANEW
    if by == "update":
        shelf.content(job, None, None, "before")
        values = (*values[2:], job)
    statement = insert if by == "insert" else update
    if refusal is None:
        assert shelf.do(statement, *values) == 1
    else:
        assert shelf.refusal(statement, *values) == refusal


@pytest.mark.parametrize(
    "change",
    [
        "version_id = {there}",
        "version = 2",
        "content = 'w', content_sha256 = sha256('w')",
    ],
)
def test_each_part_of_what_is_sent_is_asked_about(shelf: Shelf, change: str) -> None:
    here = shelf.workspace("here")
    page = shelf.channel(here)
    there = shelf.version(shelf.post(here, APPROVED))
    job = shelf.goes(shelf.post(here, APPROVED), page)
    update = f"UPDATE job_contents SET {change.format(there=there)} WHERE job_id = %s"
    assert shelf.refusal(update, job) == OTHER_BYTES


def test_what_stays_as_it_is_is_not_asked_about(shelf: Shelf) -> None:
    """Of a withdrawn version, for instance, when something else of the row is written."""
    here = shelf.workspace("here")
    job = shelf.goes(shelf.post(here, WITHDRAWN), shelf.channel(here), hold=GONE)
    assert shelf.do("UPDATE job_contents SET content = content WHERE job_id = %s", job) == 1
