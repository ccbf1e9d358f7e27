"""What is written: inheritance, its hash, and what cannot be kept."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from publisher.editorial.documents import (
    TEXT_LONGEST,
    Document,
    DocumentRefused,
    Part,
    Variant,
)
from publisher.editorial.version_rows import read_version
from publisher.engine.content import ContentError, Media, Post
from tests.editorial.posts.conftest import Desk, refused_by

_texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)
_media = st.lists(
    st.builds(
        Media, kind=st.just("image"), type=st.just("image/png"), alt=_texts, url=st.none() | _texts
    ),
    max_size=2,
).map(tuple)
_comments = st.none() | _texts.filter(bool)


@st.composite
def variants(draw: st.DrawFn) -> Variant:
    own = draw(st.sets(st.sampled_from(Part), min_size=1))
    values = {
        Part.TEXT: draw(_texts),
        Part.LINK: draw(st.none() | _texts),
        Part.MEDIA: draw(_media),
        Part.FIRST_COMMENT: draw(_comments),
    }
    return Variant.of(**{str(part): values[part] for part in own})


def documents(channel_ids: list[int]) -> st.SearchStrategy[Document]:
    return st.builds(
        Document,
        st.builds(Post, _texts, st.none() | _texts, _media),
        _comments,
        st.dictionaries(st.sampled_from(channel_ids), variants()),
    )


@given(documents([1, 2, 300]))
def test_what_is_written_is_read_again(document: Document) -> None:
    again = Document.from_json(document.to_json())
    assert again == document
    assert again.sha256() == document.sha256()
    for channel_id in (1, 2, 300, 4):
        variant = document.variants.get(channel_id)
        own = frozenset() if variant is None else variant.own
        sent = document.post_for(channel_id)
        for part in (Part.TEXT, Part.LINK, Part.MEDIA):
            source = variant if part in own else document.post
            assert getattr(sent, part) == getattr(source, part)


@given(documents([1, 2]), documents([1, 2]))
def test_the_hash_is_of_everything_that_is_sent(one: Document, other: Document) -> None:
    def sent(document: Document) -> object:
        return (
            document.post,
            document.first_comment,
            {
                at: (document.post_for(at), document.first_comment_for(at))
                for at in document.variants
            },
        )

    def whole(document: Document) -> object:
        return document.sha256() or document.post.to_json()

    assert (whole(one) == whole(other)) == (sent(one) == sent(other))


def test_the_database_computes_the_same_hash(desk: Desk) -> None:
    pages = [desk.page(), desk.page()]
    post = desk.new(*pages)

    @settings(
        max_examples=25,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(documents([page.channel_id for page in pages]))
    def check(document: Document) -> None:
        desk.save(post, document)
        with desk.transaction() as conn:
            stored = read_version(conn, post)
        assert stored.document == document

    check()


LONG = "x" * (TEXT_LONGEST + 1)


@pytest.mark.parametrize(
    ("document", "field", "code"),
    [
        (Document(Post("a\0b")), "text", "content-refused"),
        (Document(Post("a\ud800")), "text", "content-refused"),
        (Document(Post(LONG * 50)), "text", "content-too-large"),
        (Document(Post("a"), "\0"), "first_comment", "content-refused"),
        (Document(Post("a"), ""), "first_comment", "content-refused"),
        (Document(Post("a", "\udfff")), "link", "content-refused"),
        (
            Document(Post("a"), None, {7: Variant.of(text=LONG)}),
            "variants.7.text",
            "content-too-large",
        ),
        (Document(Post("a"), None, {7: Variant.of()}), "variants.7", "content-refused"),
        (
            Document(Post("a", None, (Media("image", "image/png", alt="\0"),))),
            "media",
            "content-refused",
        ),
        (
            Document(Post("a", None, (Media("image", "image/png"),) * 101)),
            "media",
            "content-too-large",
        ),
    ],
)
def test_what_cannot_be_kept_is_named_and_nothing_is_stored(
    desk: Desk, document: Document, field: str, code: str
) -> None:
    post = desk.new(desk.page())
    told = desk.told(post)
    refusal = refused_by(lambda: desk.save(post, document))
    assert isinstance(refusal, DocumentRefused)
    assert (refusal.field, refusal.code) == (field, code)
    assert desk.told(post) == told


@pytest.mark.parametrize(
    "document", ["", "[]", "{}", '{"text": "a"}', '{"media": 3, "text": "", "link": null}']
)
def test_nothing_else_is_read_as_a_document(document: str) -> None:
    with pytest.raises(ContentError):
        Document.from_json(document)
