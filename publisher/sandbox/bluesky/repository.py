"""A repository: one account's records, written and read.

After ``packages/pds/src/api/com/atproto/repo`` of bluesky-social/atproto. Record CIDs are real;
a commit's CID only looks like one: nothing is signed, and there is no tree.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.bluesky import calls, cids, records, refusals, tids
from publisher.sandbox.pages import Post, to_fact

if TYPE_CHECKING:
    from publisher.sandbox.bluesky.calls import Call
    from publisher.sandbox.pages import Page, Pages
    from publisher.sandbox.plan import Treatment
    from publisher.sandbox.platform import Platform

LIMIT, MOST = 50, 100
"""Records in one page of a listing."""


def create(call: Call, page: Page, done: Treatment, platform: Platform) -> dict[str, Any]:
    """Create a record; an existing key is an error that says nothing. Raises ``XrpcRefusal``."""
    state = platform.state
    rkey = call.name("rkey") or tids.at(time.time(), state.next_number())
    _check_place(call, page, rkey, state)
    post = _post(call, page, rkey, state)
    if post.id in state.posts:
        # "There is already a value at key" is a plain error in the tree (atproto#3718).
        raise refusals.internal()
    platform.publish(post, done)
    return _written(post)


def put(call: Call, page: Page, done: Treatment, platform: Platform) -> dict[str, Any]:
    """Create a record or change it; an identical one is left alone. Raises ``XrpcRefusal``.

    ``swapRecord``: null, there must be none yet; a CID, it must be this one.
    """
    state = platform.state
    _check_place(call, page, call.name("rkey"), state)
    post = _post(call, page, call.name("rkey"), state)
    old = state.posts.get(post.id)
    if old is not None and old.data["cid"] == post.data["cid"]:
        platform.record({"fact": "repeated", "request": call.request, "post": post.id})
        return _reference(post)
    if "swapRecord" in call.form.params:
        expected = call.form.params["swapRecord"]
        there = None if old is None else old.data["cid"]
        if expected != there:
            raise refusals.invalid_swap(str(there).replace("None", "null"))
    if old is None:
        platform.publish(post, done)
    else:
        edited = replace(old, message=post.message, link=post.link, data=post.data)
        platform.record({"fact": "edited", "request": call.request, "post": to_fact(edited)})
    return _written(post)


def delete(call: Call, page: Page, _done: Treatment, platform: Platform) -> dict[str, Any]:
    """Delete a record, or make sure there is none. Raises ``XrpcRefusal``."""
    _check_owner(call, page, platform.state)
    post = platform.state.posts.get(_uri(page, call.name("rkey")))
    if post is None:
        return {}
    platform.record({"fact": "deleted", "post": post.id, "request": call.request, "by": "request"})
    return {"commit": _commit(page, post.data["cid"])}


def get(call: Call, done: Treatment, state: Pages) -> dict[str, Any]:
    """Return one record; nobody has to sign in for it. Raises ``XrpcRefusal``."""
    page = _repository(call, state)
    uri = _uri(page, call.name("rkey"), call.name("collection"))
    post = state.posts.get(uri)
    is_other = post is not None and call.name("cid") not in ("", post.data["cid"])
    hidden = done.behaviour is Behaviour.UNREADABLE
    if post is None or is_other or hidden or not post.readable:
        raise refusals.record_not_found(uri)
    return _reference(post) | {"value": post.data["record"]}


def listing(call: Call, done: Treatment, state: Pages) -> dict[str, Any]:
    """Return one page of records, the highest key first. Raises ``XrpcRefusal``.

    ``limit`` 1 to 100; ``cursor`` is the last key seen; ``reverse`` turns the order round.
    """
    page = _repository(call, state)
    limit = _limit(call)
    backward = call.form.flag("reverse", default=False)
    posts = list(state.wall(page.id)) if call.name("collection") == calls.POSTS else []
    if done.behaviour is Behaviour.LISTING_DELAYED:
        posts = [post for post in posts if post.created_at <= time.time() - done.seconds]
    posts.sort(key=lambda post: str(post.data["rkey"]), reverse=not backward)
    cursor = call.name("cursor")
    if cursor:
        posts = [post for post in posts if (post.data["rkey"] > cursor) == backward]
        posts = [post for post in posts if post.data["rkey"] != cursor]
    elif done.behaviour is Behaviour.LISTING_GAP:
        posts = posts[limit:]
    shown = [_reference(post) | {"value": post.data["record"]} for post in posts[:limit]]
    return {"records": shown} | ({"cursor": posts[:limit][-1].data["rkey"]} if shown else {})


def foreign(post: Post, state: Pages) -> Post:
    """Give a post that was made elsewhere its record and its key."""
    number = state.next_number()
    rkey = tids.at(post.created_at, number)
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(post.created_at))
    milliseconds = int(post.created_at % 1 * 1000)
    record: dict[str, Any] = {
        "$type": calls.POSTS, "text": post.message, "createdAt": f"{moment}.{milliseconds:03}Z",
    }  # fmt: skip
    if post.link:
        card = {"uri": post.link, "title": "", "description": ""}
        record["embed"] = {"$type": "app.bsky.embed.external", "external": card}
    return replace(
        post, id=f"at://{post.page}/{calls.POSTS}/{rkey}", endpoint="post", serial=number,
        data={"rkey": rkey, "cid": cids.of_record(record), "record": record},
    )  # fmt: skip


def reference(post: Post) -> dict[str, Any]:
    """Return what a write answers about a post that was there already."""
    return _reference(post)


def _check_owner(call: Call, page: Page, state: Pages) -> None:
    if calls.find(call.name("repo"), state) is not page:
        raise refusals.not_yours()


def _check_place(call: Call, page: Page, rkey: str, state: Pages) -> None:
    _check_owner(call, page, state)
    if call.name("collection") != calls.POSTS:
        reason = f"The sandbox has no collection but {calls.POSTS}."
        raise refusals.invalid_request(reason)
    if not tids.is_tid(rkey):
        reason = f'Invalid record key for {calls.POSTS}: "{rkey}" is not a valid tid'
        raise refusals.invalid_request(reason)
    if not call.record:
        reason = 'Input must have the property "record"'
        raise refusals.invalid_request(reason)


def _post(call: Call, page: Page, rkey: str, state: Pages) -> Post:
    record = {"$type": calls.POSTS} | call.record
    records.check(record, page, state)
    try:
        cid = cids.of_record(record)
    except cids.NotARecord as error:
        raise refusals.invalid_request(str(error)) from None
    blobs = [state.named[(page.id, blob["ref"]["$link"])].id for blob in calls.blobs(record)]
    return Post(
        id=_uri(page, rkey),
        page=page.id,
        endpoint="post",
        message=record["text"],
        link=call.asked.link,
        media=tuple(blobs),
        created_at=time.time(),
        application=page.application,
        application_name=page.application_name,
        request=call.request,
        client_mutation_id=rkey,
        serial=state.next_number(),
        data={"rkey": rkey, "cid": cid, "record": record},
    )


def _repository(call: Call, state: Pages) -> Page:
    page = calls.find(call.name("repo"), state)
    if page is None:
        raise refusals.repository_not_found(call.name("repo"))
    return page


def _limit(call: Call) -> int:
    text = call.form.text("limit") or str(LIMIT)
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        reason = f"Error: Params must have the property limit between 1 and {MOST}"
        raise refusals.invalid_request(reason)
    return int(text)


def _uri(page: Page, rkey: str, collection: str = calls.POSTS) -> str:
    return f"at://{page.id}/{collection}/{rkey}"


def _reference(post: Post) -> dict[str, Any]:
    return {"uri": post.id, "cid": post.data["cid"]}


def _written(post: Post) -> dict[str, Any]:
    rev = {"commit": _commit(post.page, post.data["cid"])}
    return _reference(post) | rev | {"validationStatus": "valid"}


def _commit(page: Page | str, cid: str) -> dict[str, str]:
    rev = tids.at(time.time(), 0)
    did = page if isinstance(page, str) else page.id
    return {"cid": cids.of_record({"did": did, "rev": rev, "data": cid}), "rev": rev}
