"""Drafts save themselves; two people who write at once are told, and lose nothing."""

from __future__ import annotations

import pytest

from publisher.editorial import drafts, post_events, reviews, versions
from publisher.editorial.documents import Document
from publisher.editorial.drafts import EditConflict
from publisher.editorial.version_rows import read_version, versions_of
from publisher.engine.content import Post
from publisher.engine.errors import NotFound
from tests.editorial.posts.conftest import Desk, own_text, refused_by

FIRST, SECOND = Document(Post("One person's")), Document(Post("Another's"))


def autosave(desk: Desk, post: int, document: Document, revision: int, who: str) -> drafts.Draft:
    with desk.transaction() as conn:
        return drafts.autosave(conn, post, document, revision=revision, who=who)


def test_a_draft_saves_itself_without_versions_or_journal(desk: Desk) -> None:
    post = desk.new(desk.page())
    before = desk.told(post)
    with desk.transaction() as conn:
        revision = drafts.read(conn, post).revision
    for text in ("a", "ab", "abc"):
        kept = autosave(desk, post, Document(Post(text)), revision, "writer")
        assert kept.revision == revision + 1
        revision = kept.revision
    assert kept.document.post.text == "abc"
    assert kept.based_on == 1
    assert desk.told(post) == before
    with desk.transaction() as conn:
        assert [version.number for version in versions_of(conn, post)] == [1]


@pytest.mark.parametrize("second", ["autosave", "save", "back"])
def test_the_second_of_two_sees_both_texts(desk: Desk, second: str) -> None:
    post = desk.new(desk.page())
    with desk.transaction() as conn:
        opened = drafts.read(conn, post).revision
    autosave(desk, post, FIRST, opened, "one")

    def act() -> object:
        if second == "autosave":
            return autosave(desk, post, SECOND, opened, "two")
        if second == "save":
            return desk.save(post, SECOND, who="two", revision=opened)
        with desk.transaction() as conn:
            return versions.go_back(
                conn, post, 1, revision=opened, who="two", registry=desk.registry
            )

    conflict = refused_by(act)
    assert isinstance(conflict, EditConflict)
    assert conflict.code == "edited-meanwhile"
    assert conflict.theirs.document == FIRST
    assert conflict.theirs.saved_by == "one"
    assert conflict.yours == (Document(Post("Hello")) if second == "back" else SECOND)
    assert "one saved this post" in str(conflict)
    desk.save(post, SECOND, who="two", revision=conflict.theirs.revision)
    with desk.transaction() as conn:
        assert drafts.read(conn, post).document == SECOND


def test_a_post_of_a_file_has_a_draft_as_soon_as_somebody_writes(desk: Desk) -> None:
    post = desk.new(desk.page())
    desk.ground.sql("DELETE FROM post_drafts WHERE post_id = %s", post)
    with desk.transaction() as conn:
        opened = drafts.read(conn, post)
    assert (opened.revision, opened.document.post.text) == (0, "Hello")
    assert autosave(desk, post, FIRST, 0, "one").revision == 1
    assert refused_by(lambda: autosave(desk, post, SECOND, 0, "two")).code == "edited-meanwhile"


def test_a_save_makes_a_version_only_when_something_changed(desk: Desk) -> None:
    post = desk.new(desk.page())
    assert not desk.save(post, "Hello").is_new
    assert desk.save(post, "Other").version.number == 2
    with desk.transaction() as conn:
        assert [version.number for version in versions_of(conn, post)] == [1, 2]
        assert read_version(conn, post).document.post.text == "Other"
        assert refused_by(lambda: read_version(conn, post, 9)).code == "not-found"


def test_variants_come_back_as_they_were_written(desk: Desk) -> None:
    page = desk.page()
    post = desk.new(page)
    document = own_text(Document(Post("All", "https://example.org/")), page, "Own")
    desk.save(post, document)
    with desk.transaction() as conn:
        assert read_version(conn, post).document == document
        assert drafts.read(conn, post).document == document


def test_a_variant_makes_its_channel_a_target(desk: Desk) -> None:
    one, other = desk.page(), desk.page()
    post = desk.new(one)
    desk.save(post, own_text(Document(Post("All")), other, "Own"), channel_ids=[one.channel_id])
    with desk.transaction() as conn:
        assert drafts.targets_of(conn, post) == (one.channel_id, other.channel_id)


def test_nothing_is_stored_for_a_channel_that_is_none(desk: Desk) -> None:
    post = desk.new(desk.page())
    document = Document(Post("All"), None, own_text(Document(Post("")), desk.page(), "x").variants)
    nowhere = Document(Post("All"), None, {2**30: next(iter(document.variants.values()))})
    assert isinstance(refused_by(lambda: desk.save(post, nowhere)), NotFound)
    with desk.transaction() as conn:
        assert read_version(conn, post).number == 1


def test_a_ref_is_taken_once(desk: Desk) -> None:
    with desk.transaction() as conn:
        drafts.new(conn, FIRST, who="one", ref="spring")
    with desk.transaction() as conn:
        assert refused_by(lambda: drafts.new(conn, SECOND, who="two", ref="spring")).code == (
            "ref-taken"
        )


def test_a_draft_that_was_never_saved_cannot_be_approved(desk: Desk) -> None:
    with desk.transaction() as conn:
        draft = drafts.new(conn, FIRST, who="one")
    assert refused_by(lambda: desk.approve(draft.post_id)).code == "no-version"
    assert refused_by(lambda: desk.submit(draft.post_id)).code == "no-version"


def test_a_review_is_of_one_version(desk: Desk) -> None:
    post = desk.new(desk.page())
    assert desk.submit(post, approver="chief")
    assert not desk.submit(post)
    desk.save(post, "Better")
    assert desk.submit(post, number=2)
    assert refused_by(lambda: desk.approve(post, number=1)).code == "version-is-old"
    with desk.transaction() as conn:
        reviews.request_changes(conn, post, who="chief", comment="Shorter")
        assert refused_by(
            lambda: reviews.request_changes(conn, post, who="x", comment=" ")
        ).code == ("comment-missing")
    assert desk.submit(post)
    desk.approve(post, comment="Good")
    assert refused_by(lambda: desk.submit(post)).code == "already-approved"
    decided = desk.ground.sql("SELECT decision FROM reviews WHERE post_id = %s ORDER BY id", post)
    assert [row["decision"] for row in decided] == ["superseded", "changes_requested", "approved"]
    with desk.transaction() as conn:
        said = {event.event: event.detail for event in post_events.of_post(conn, post)}
    assert said["changes_requested"] == {"comment": "Shorter"}
    assert said["approved"]["comment"] == "Good"
