"""A post's page: status, labels, people, comments, and who did what."""

from __future__ import annotations

import pytest

from publisher.editorial import drafts, labels, listing, post_pages, reviews, trash
from publisher.editorial.documents import Document, Variant
from publisher.editorial.labels import LabelRefused
from publisher.editorial.post_lock import find_post
from publisher.editorial.post_pages import Status
from publisher.engine.content import Post
from publisher.engine.errors import NotFound
from tests.editorial.posts.conftest import Desk, refused_by


def page_of(desk: Desk, post: int) -> post_pages.PostPage:
    with desk.transaction() as conn:
        return post_pages.read(conn, post)


def test_a_status_is_that_of_the_newest_version(desk: Desk) -> None:
    post = desk.new(desk.page())
    seen = [page_of(desk, post).status]
    desk.submit(post, approver="chief")
    seen.append(page_of(desk, post).status)
    desk.approve(post)
    seen.append(page_of(desk, post).status)
    desk.save(post, "Better")
    seen.append(page_of(desk, post).status)
    with desk.transaction() as conn:
        trash.trash(conn, post, who="writer")
    seen.append(page_of(desk, post).status)
    assert seen == [
        Status.DRAFT, Status.IN_REVIEW, Status.APPROVED, Status.DRAFT, Status.TRASHED,
    ]  # fmt: skip
    page = page_of(desk, post)
    assert page.review is not None
    assert (page.review.version, page.review.approver, page.review.decided_by) == (
        1, "chief", "chief",
    )  # fmt: skip
    assert [version.is_approved for version in page.versions] == [True, False]
    with desk.transaction() as conn:
        assert post not in [listed.id for listed in listing.newest(conn)]


def test_a_withdrawn_approval_is_none_in_lists(desk: Desk) -> None:
    post = desk.new(desk.page())
    desk.approve(post)
    desk.withdraw(post)
    assert page_of(desk, post).status is Status.DRAFT
    with desk.transaction() as conn:
        listed = next(one for one in listing.newest(conn) if one.id == post)
    assert listed.approved_at is None
    assert refused_by(lambda: desk.withdraw(post)).code == "not-approved"


def test_changes_that_are_in_no_version_are_told(desk: Desk) -> None:
    post = desk.new(desk.page())
    page = page_of(desk, post)
    assert not page.has_unsaved_changes
    with desk.transaction() as conn:
        drafts.autosave(
            conn, post, Document(Post("Half a")), revision=page.draft.revision, who="writer"
        )
    assert page_of(desk, post).has_unsaved_changes


def test_labels_and_people_come_and_go_and_are_told(desk: Desk) -> None:
    post = desk.new(desk.page())
    with desk.transaction() as conn:
        assert labels.label(conn, post, who="w", add=["news ", "spring"]) == ("news", "spring")
        assert labels.label(conn, post, who="w", add=["news"]) == ("news", "spring")
        assert labels.label(conn, post, who="w", remove=["spring"]) == ("news",)
        assert labels.assign(conn, post, who="w", add=["Ann", "Bo"]) == ("Ann", "Bo")
        assert labels.assign(conn, post, who="w", remove=["Ann"]) == ("Bo",)
    page = page_of(desk, post)
    assert (page.labels, page.assignees) == (("news",), ("Bo",))
    told = [event.event for event in page.events]
    assert (told.count("labelled"), told.count("assigned")) == (2, 2)


@pytest.mark.parametrize("label", ["", "  ", "x" * 51, "two\nlines", "nul\0"])
def test_what_is_no_label(desk: Desk, label: str) -> None:
    post = desk.new(desk.page())
    with desk.transaction() as conn:
        refusal = refused_by(lambda: labels.label(conn, post, who="w", add=[label]))
    assert isinstance(refusal, LabelRefused)


def test_a_post_has_so_many_labels_at_most(desk: Desk) -> None:
    post = desk.new(desk.page())

    def add() -> None:
        with desk.transaction() as conn:
            labels.label(conn, post, who="w", add=[f"label {n}" for n in range(51)])

    assert isinstance(refused_by(add), LabelRefused)
    assert page_of(desk, post).labels == ()


def test_comments_are_kept_with_their_version(desk: Desk) -> None:
    post = desk.new(desk.page())

    def say(comment: str, number: int | None = None) -> None:
        with desk.transaction() as conn:
            reviews.comment_on(conn, post, who="reader", comment=comment, number=number)

    say("Good", 1)
    said = page_of(desk, post).events[-1]
    assert (said.event, said.who, said.version) == ("commented", "reader", 1)
    assert said.detail == {"comment": "Good"}
    codes = [
        refused_by(lambda: say(" ")).code,
        refused_by(lambda: say("x" * 10_001)).code,
        refused_by(lambda: say("a\0b")).code,
        refused_by(lambda: say("a\ud800b")).code,
        refused_by(lambda: say("Good", 9)).code,
    ]
    assert codes == [
        "comment-missing", "comment-too-long", "comment-refused", "comment-refused", "not-found",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["", "nothing", "9" * 18, "9" * 40, "-1", "1.0", "٣", "a\0b", "\ud800"]
)
def test_what_names_no_post(desk: Desk, name: str) -> None:
    with desk.transaction() as conn:
        assert isinstance(refused_by(lambda: find_post(conn, name)), NotFound)
        assert isinstance(refused_by(lambda: post_pages.read(conn, 2**40)), NotFound)
    assert isinstance(refused_by(lambda: desk.approve(2**40)), NotFound)


def test_a_ref_wins_over_a_number(desk: Desk) -> None:
    first = desk.new(desk.page())
    with desk.transaction() as conn:
        second = drafts.new(conn, Document(Post("x")), who="w", ref=str(first)).post_id
        assert find_post(conn, str(first)) == second
        assert find_post(conn, f" {second} ") == second


def test_numbers_beyond_every_column_are_none(desk: Desk) -> None:
    page = desk.page()
    post = desk.new(page)
    for act in (
        lambda: desk.submit(2**70),
        lambda: desk.save(-1, "x"),
        lambda: desk.back(post, 2**40),
        lambda: desk.save(post, "x", channel_ids=[2**40]),
        lambda: desk.save(post, Document(Post("x"), None, {2**40: Variant.of(text="y")})),
    ):
        assert isinstance(refused_by(act), NotFound)
    assert page_of(desk, post).draft.document.post.text == "Hello"


@pytest.mark.parametrize("ref", ["", " ", "a\0b", "\ud800", "two\nlines", "x" * 201])
def test_what_is_no_ref(desk: Desk, ref: str) -> None:
    with desk.transaction() as conn:
        refusal = refused_by(lambda: drafts.new(conn, Document(Post("x")), who="w", ref=ref))
    assert refusal.code == "ref-refused"
