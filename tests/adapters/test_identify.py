"""A link or an id that a person pasted: what is taken for the post, and a sentence for what is not.

Real sandbox, every platform. The sentences are the contract, so they are written out here.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from publisher.adapters.facebook_pages.listing import Bounds
from publisher.engine.content import Media, Post
from publisher.engine.evidence import Candidate, Mismatch, NotThisPost
from publisher.engine.outcome import Published
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Transport
from tests.adapters.bluesky_stand import BlueskyStand
from tests.adapters.facebook_stand import FacebookStand
from tests.adapters.liar import Liar, Said
from tests.adapters.mastodon_stand import MastodonStand
from tests.adapters.stand import Attempt, Fault, Stand, photo_post, send, text_post
from tests.adapters.telegram_stand import TelegramStand

TEXT = "The mill is open. Grist from eight."
VIDEO = b"\x00\x00\x00\x18ftypmp42" + b"not much of a film" * 20


@pytest.fixture
def facebook(sandbox: SandboxProcess, transport: Transport) -> FacebookStand:
    return FacebookStand(sandbox, transport)


@pytest.fixture
def mastodon(sandbox: SandboxProcess, transport: Transport) -> MastodonStand:
    return MastodonStand(sandbox, transport)


@pytest.fixture
def bluesky(sandbox: SandboxProcess, transport: Transport) -> BlueskyStand:
    return BlueskyStand(sandbox, transport)


@pytest.fixture
def telegram(sandbox: SandboxProcess, transport: Transport) -> TelegramStand:
    return TelegramStand(sandbox, transport)


def lost(stand: Stand, post: Post | None = None) -> Attempt:
    """A post that is on the page, though no answer said so."""
    stand.misbehave(Fault.LOSE_ANSWER)
    attempt, _ = send(stand, post or text_post(TEXT))
    return attempt


def newest(stand: FacebookStand | MastodonStand | BlueskyStand) -> str:
    return str(stand.control.posts(stand.page)[0]["id"])


def taken(stand: Stand, attempt: Attempt, given: str) -> Candidate:
    found = stand.adapter.identify(attempt.query(), given)
    assert isinstance(found, Candidate), found
    return found


def refused(stand: Stand, attempt: Attempt, given: str, code: Mismatch) -> str:
    found = stand.adapter.identify(attempt.query(), given)
    assert isinstance(found, NotThisPost), found
    assert found.code is code, found
    assert stand.secret not in found.message
    assert found.message.endswith("Nothing was recorded.")
    return found.message


# ---------------------------------------------------------------------------------------------
# Facebook


def test_facebook_takes_ids_and_every_link_with_a_number(facebook: FacebookStand) -> None:
    attempt = lost(facebook)
    post = newest(facebook)
    page, _, number = post.partition("_")
    for given in (
        post,
        number,
        f"  {post}\n",
        f"{facebook.url}/a/{post}",
        f"https://www.facebook.com/{post}",
        f"https://www.facebook.com/{page}/posts/{number}",
        f"https://www.facebook.com/A.Page/posts/the-mill-is-open/{number}/",
        f"https://m.facebook.com/story.php?story_fbid={number}&id={page}",
        f"https://www.facebook.com/permalink.php?story_fbid={number}&id=100064{page}",
    ):
        found = taken(facebook, attempt, given)
        assert (found.remote_id, found.text, found.ours) == (post, TEXT, True), given
        assert found.permalink


@pytest.mark.parametrize(
    "given",
    [
        "",
        "the one from this morning",
        "https://example.org/101_1",
        "https://notfacebook.com/101_1",
        "https://www.facebook.com/A.Page",
        "https://www.facebook.com/photo/?fbid=123456",
        "https://www.facebook.com/A.Page/photos/a.1/123456",
        "https://www.facebook.com/share/p/1AbCdEfGh",
        "javascript:alert(1)",
        "https://[::1",
        "١٢٣",
        "101_1; DROP",
    ],
)
def test_facebook_refuses_what_is_no_link(facebook: FacebookStand, given: str) -> None:
    said = refused(facebook, lost(facebook), given, Mismatch.NO_LINK)
    assert said == (
        f"That link is not this post: “{given.strip()}” is no link to or id of a post on Facebook, "
        "such as https://www.facebook.com/PAGE/posts/NUMBER. Nothing was recorded."
    )


def test_facebook_refuses_another_page(facebook: FacebookStand, sandbox: SandboxProcess) -> None:
    attempt = lost(facebook)
    other = sandbox.control.add_pages(2)[1]["id"]
    post = sandbox.control.foreign_post(other, TEXT)
    number = post.partition("_")[2]
    whose = f"That link is not this post: it belongs to another Page ({other}). "
    for given in (post, f"https://www.facebook.com/permalink.php?story_fbid={number}&id={other}"):
        assert refused(facebook, attempt, given, Mismatch.ANOTHER_PAGE).startswith(whose)


def test_facebook_refuses_what_is_not_there(facebook: FacebookStand) -> None:
    attempt = lost(facebook)
    facebook.control.take_down(post := newest(facebook))
    assert refused(facebook, attempt, post, Mismatch.NOT_FOUND) == (
        "That link is not this post: no such post is on this Page; it was taken down, or it is "
        "somebody else's. Nothing was recorded."
    )


def test_facebook_refuses_a_post_from_before_we_sent(facebook: FacebookStand) -> None:
    attempt = lost(facebook)
    at = attempt.began_at - timedelta(minutes=20)
    early = facebook.post_by_someone(TEXT, at=at)
    said = refused(facebook, attempt, early, Mismatch.TOO_EARLY)
    shown = "%H:%M:%S" if at.date() == attempt.began_at.date() else "%Y-%m-%d %H:%M:%S"
    assert said == (
        f"That link is not this post: it was created at {at.strftime(shown)} UTC, before we sent "
        f"at {attempt.began_at.strftime(shown)} UTC. Nothing was recorded."
    )
    # The platform's clock may be behind ours by a little.
    close = facebook.control.foreign_post(
        facebook.page, TEXT, created_at=attempt.began_at - timedelta(seconds=50), application=None
    )
    assert taken(facebook, attempt, close).remote_id == close


def test_facebook_refuses_another_text_and_shows_where_it_parts(facebook: FacebookStand) -> None:
    attempt = lost(facebook)
    other = facebook.post_by_someone("The mill is open. Grist from nine.")
    assert refused(facebook, attempt, other, Mismatch.TEXT_DIFFERS) == (
        "That link is not this post: its text differs here: we sent “…pen. Grist from eight.”, it "
        "has “…pen. Grist from nine.”. Nothing was recorded."
    )


def test_marks_that_show_nothing_are_shown_where_texts_differ(facebook: FacebookStand) -> None:
    attempt = lost(facebook, text_post("می\u200cروم شب"))
    # The mark alone makes no other text of it.
    same = facebook.control.foreign_post(facebook.page, "میروم شب", application=None)
    assert taken(facebook, attempt, same).remote_id == same
    other = facebook.control.foreign_post(facebook.page, "\u200fمیروم روز", application=None)
    said = refused(facebook, attempt, other, Mismatch.TEXT_DIFFERS)
    assert "می[ZWNJ]روم شب" in said
    assert "[RLM]میروم روز" in said


def test_facebook_refuses_what_another_application_made(facebook: FacebookStand) -> None:
    attempt = lost(facebook)
    foreign = facebook.post_by_someone(TEXT)
    assert refused(facebook, attempt, foreign, Mismatch.NOT_OURS) == (
        "That link is not this post: somebody else made it; another application or other media "
        "are on it. Nothing was recorded."
    )


def test_facebook_refuses_other_photos(facebook: FacebookStand) -> None:
    attempt = lost(facebook, photo_post(TEXT, "a"))
    ours = newest(facebook)
    assert taken(facebook, attempt, ours).ours is True
    facebook.misbehave(Fault.LOSE_ANSWER)
    send(facebook, photo_post(TEXT, "b"))
    refused(facebook, attempt, newest(facebook), Mismatch.NOT_OURS)


def test_facebook_takes_a_video_by_its_own_id_and_by_its_posts(facebook: FacebookStand) -> None:
    facebook.store.files["v"] = VIDEO
    media = (Media(kind="video", type="video/mp4", sha256="v", size=len(VIDEO)),)
    attempt = lost(facebook, Post(TEXT, media=media))
    kept = facebook.control.posts(facebook.page)[0]
    video = kept["media"][0]
    for given in (
        video,
        f"https://www.facebook.com/watch/?v={video}",
        f"https://www.facebook.com/reel/{video}",
        f"https://www.facebook.com/{facebook.page}/videos/{video}/",
        kept["id"],
    ):
        assert taken(facebook, attempt, given).remote_id == video, given
    refused(facebook, attempt, "999999999", Mismatch.NOT_FOUND)


def test_facebook_finds_a_pfbid_where_the_listing_shows_it(
    facebook: FacebookStand, transport: Transport
) -> None:
    attempt = lost(facebook)
    said = refused(
        facebook,
        attempt,
        "https://www.facebook.com/A.Page/posts/pfbid02abcdefghijklmnopqrst",
        Mismatch.NO_LINK,
    )
    assert "a link with “pfbid” does not tell us which post it is" in said
    pfbid = "https://www.facebook.com/A.Page/posts/pfbid02abcdefghijklmnopqrst"
    item = {
        "id": f"{facebook.page}_5",
        "message": TEXT,
        "created_time": attempt.began_at.strftime("%Y-%m-%dT%H:%M:%S+0000"),
        "permalink_url": pfbid,
        "is_published": True,
    }
    with Liar(lambda _: Said({"data": [item]})) as liar:
        found = facebook.adapter_at(transport, liar.url).identify(attempt.query(), f"{pfbid}?r=1")
    assert isinstance(found, Candidate)
    assert found.remote_id == f"{facebook.page}_5"
    facebook.fail_listing()
    refused(facebook, attempt, pfbid, Mismatch.UNREADABLE)


def test_facebook_records_nothing_while_the_page_cannot_be_read(
    facebook: FacebookStand, transport: Transport
) -> None:
    attempt = lost(facebook)
    post = newest(facebook)
    facebook.control.behave(Behaviour.FAIL_500, page=facebook.page, endpoint="read", times=9)
    said = refused(facebook, attempt, post, Mismatch.UNREADABLE)
    assert said.startswith("That link cannot be checked just now: Facebook answered: ")
    facebook.control.heal()
    for channel in (facebook.broken, facebook.unreachable):
        query = attempt.query()
        query = replace(query, task=replace(query.task, channel=channel))
        adapter = facebook.adapter_at(transport, facebook.url, bounds=Bounds(seconds=1.0))
        found = adapter.identify(query, post)
        assert isinstance(found, NotThisPost)
        assert found.code is Mismatch.UNREADABLE
    facebook.control.revoke(facebook.page)
    refused(facebook, attempt, post, Mismatch.UNREADABLE)


@pytest.mark.parametrize(
    "body",
    [b"<html>", [], {}, {"id": "1_1"}, {"id": "{page}_5"}, {"id": "{page}_5", "created_time": "x"}],
)
def test_facebook_believes_no_answer_that_is_not_the_post(
    facebook: FacebookStand, transport: Transport, body: object
) -> None:
    attempt = lost(facebook)
    if isinstance(body, dict):
        body = {name: value.format(page=facebook.page) for name, value in body.items()}
    with Liar(lambda _: Said(body)) as liar:
        found = facebook.adapter_at(transport, liar.url).identify(attempt.query(), "5")
    assert isinstance(found, NotThisPost)
    assert found.code is Mismatch.UNREADABLE


def test_what_a_server_writes_is_shown_and_never_obeyed(
    facebook: FacebookStand, transport: Transport
) -> None:
    attempt = lost(facebook)
    item = {
        "id": f"{facebook.page}_5",
        "message": f"\x1b[2J{facebook.secret}\x9b",
        "created_time": attempt.began_at.strftime("%Y-%m-%dT%H:%M:%S+0000"),
    }
    with Liar(lambda _: Said(item)) as liar:
        found = facebook.adapter_at(transport, liar.url).identify(attempt.query(), "5")
    assert isinstance(found, NotThisPost)
    assert found.code is Mismatch.TEXT_DIFFERS
    assert found.message.isprintable()
    assert facebook.secret not in found.message


# ---------------------------------------------------------------------------------------------
# Mastodon


def test_mastodon_takes_ids_and_links_on_its_own_server(mastodon: MastodonStand) -> None:
    attempt = lost(mastodon)
    post = newest(mastodon)
    user = f"user{mastodon.page}"
    for given in (
        post,
        f"{mastodon.url}/@{user}/{post}",
        f"{mastodon.url}/users/{user}/statuses/{post}",
        f"{mastodon.url}/web/statuses/{post}",
        f"{mastodon.url}/notice/{post}",
    ):
        found = taken(mastodon, attempt, given)
        assert (found.remote_id, found.text) == (post, TEXT)
        assert found.permalink == f"{mastodon.url}/@{user}/{post}"


def test_mastodon_refuses_with_a_sentence_each(
    mastodon: MastodonStand, sandbox: SandboxProcess, transport: Transport
) -> None:
    attempt = lost(mastodon)
    post = newest(mastodon)
    said = refused(mastodon, attempt, "this morning's", Mismatch.NO_LINK)
    assert "is no link to or id of a post on Mastodon" in said
    refused(mastodon, attempt, f"{mastodon.url}/@user", Mismatch.NO_LINK)
    elsewhere = f"https://example.social/@user{mastodon.page}/{post}"
    assert "it belongs to another server (example.social), and not to this account's" in refused(
        mastodon, attempt, elsewhere, Mismatch.ANOTHER_PAGE
    )
    other = MastodonStand(sandbox, transport)
    theirs = other.post_by_someone(TEXT)
    assert f"it belongs to another account (@user{other.page})" in refused(
        mastodon, attempt, theirs, Mismatch.ANOTHER_PAGE
    )
    assert "no such post is on this account" in refused(
        mastodon, attempt, "123", Mismatch.NOT_FOUND
    )
    early = mastodon.post_by_someone(TEXT, at=attempt.began_at - timedelta(hours=1))
    refused(mastodon, attempt, early, Mismatch.TOO_EARLY)
    differs = mastodon.post_by_someone("Something else")
    refused(mastodon, attempt, differs, Mismatch.TEXT_DIFFERS)
    mastodon.control.behave(Behaviour.FAIL_500, page=mastodon.page, endpoint="any", times=9)
    refused(mastodon, attempt, post, Mismatch.UNREADABLE)
    mastodon.control.heal()


def test_mastodon_refuses_other_media(mastodon: MastodonStand) -> None:
    attempt = lost(mastodon, photo_post(TEXT, "a"))
    assert taken(mastodon, attempt, newest(mastodon)).ours is True
    refused(mastodon, attempt, mastodon.post_by_someone(TEXT), Mismatch.NOT_OURS)


# ---------------------------------------------------------------------------------------------
# Bluesky


def test_bluesky_takes_addresses_links_and_the_key(bluesky: BlueskyStand) -> None:
    attempt = lost(bluesky)
    uri = newest(bluesky)
    key = uri.rpartition("/")[2]
    for given in (
        uri,
        f"at://{bluesky.handle}/app.bsky.feed.post/{key}",
        f"https://bsky.app/profile/{bluesky.page}/post/{key}",
        f"https://bsky.app/profile/{bluesky.handle}/post/{key}",
        f"https://deer.social/profile/{bluesky.handle}/post/{key}",
        key,
    ):
        found = taken(bluesky, attempt, given)
        assert (found.remote_id, found.text) == (uri, TEXT), given


def test_bluesky_refuses_with_a_sentence_each(
    bluesky: BlueskyStand, sandbox: SandboxProcess, transport: Transport
) -> None:
    attempt = lost(bluesky)
    uri = newest(bluesky)
    for given in (
        "",
        "this morning's",
        "https://bsky.app/profile/x",
        "at://x/app.bsky.feed.like/1",
    ):
        refused(bluesky, attempt, given, Mismatch.NO_LINK)
    other = BlueskyStand(sandbox, transport)
    theirs = other.post_by_someone(TEXT)
    assert f"it belongs to another account ({other.page})" in refused(
        bluesky, attempt, theirs, Mismatch.ANOTHER_PAGE
    )
    unknown = "https://bsky.app/profile/nobody.example/post/3kabc"
    assert "another account (nobody.example)" in refused(
        bluesky, attempt, unknown, Mismatch.ANOTHER_PAGE
    )
    refused(bluesky, attempt, "3kabcdefghijk", Mismatch.NOT_FOUND)
    by_hand = bluesky.post_by_someone(TEXT)
    key = uri.rpartition("/")[2]
    assert refused(bluesky, attempt, by_hand, Mismatch.NOT_OURS) == (
        "That link is not this post: somebody else made it; a post of ours would stand under the "
        f"key {key}. Nothing was recorded."
    )
    differs = bluesky.post_by_someone("Something else")
    refused(bluesky, attempt, differs, Mismatch.TEXT_DIFFERS)
    early = bluesky.post_by_someone(TEXT, at=attempt.began_at - timedelta(days=1))
    refused(bluesky, attempt, early, Mismatch.TOO_EARLY)
    bluesky.fail_listing()
    refused(bluesky, attempt, uri, Mismatch.UNREADABLE)
    bluesky.control.heal()


# ---------------------------------------------------------------------------------------------
# Telegram: nobody may read a channel's message


def test_telegram_takes_a_link_to_its_channel_unread(telegram: TelegramStand) -> None:
    attempt, outcome = send(telegram, text_post(TEXT))
    assert isinstance(outcome, Published)
    number = outcome.remote_id.partition("/")[2]
    private = telegram.page.removeprefix("-100")
    for given in (
        number,
        outcome.remote_id,
        f"@{telegram.username}/{number}",
        f"https://t.me/{telegram.username.upper()}/{number}",
        f"t.me/{telegram.username}/{number}?single",
        f"https://t.me/s/{telegram.username}/{number}",
        f"https://t.me/c/{private}/{number}",
    ):
        found = taken(telegram, attempt, given)
        assert (found.remote_id, found.text, found.ours) == (outcome.remote_id, "", None), given
        assert found.permalink == f"https://t.me/{telegram.username}/{number}"


def test_telegram_refuses_another_channel_and_what_is_no_link(telegram: TelegramStand) -> None:
    attempt = lost(telegram)
    said = refused(telegram, attempt, "https://t.me/somebody_else/12", Mismatch.ANOTHER_PAGE)
    assert "it belongs to another channel (@somebody_else)" in said
    refused(telegram, attempt, "https://t.me/c/99/12", Mismatch.ANOTHER_PAGE)
    for given in ("0", "https://t.me/joinchat/AAAA", "https://example.org/a/1", "t.me/x/y"):
        refused(telegram, attempt, given, Mismatch.NO_LINK)
    query = attempt.query()
    for channel in (telegram.broken, telegram.unreachable):
        there = replace(query, task=replace(query.task, channel=channel))
        found = telegram.adapter.identify(there, "12")
        assert isinstance(found, NotThisPost)
        assert found.code is Mismatch.UNREADABLE
