"""Builds the record of a post, once, from frozen content and what the steps have gathered.

Its JSON text is kept in progress and sent as it stands on every attempt, so that a repeat is equal
byte for byte: an equal record under the same key is no change to a server, another one is refused.
``createdAt`` is the instant in the record key, the job's first scheduled one, and never the time
of sending: what is sent must not depend on when. A post that was moved to a later day says so
with its first time, and clients sort it there.

Progress, all of it JSON: ``blobs`` (blob references by place in the post), ``shapes`` (width and
height by place), ``uploaded_for`` (the attempt they were uploaded for), ``mentions`` (DIDs by
handle, null where there is none), ``record`` (the text), ``repo`` and ``url`` (whose record it is
and where that account's records are kept).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from publisher.adapters.bluesky import facets, tid
from publisher.adapters.bluesky.account import is_did
from publisher.adapters.bluesky.shape import Shape
from publisher.adapters.bluesky.xrpc import POST
from publisher.engine.adapter import Progress, Task
from publisher.engine.content import Post, canonical


@dataclass(frozen=True, slots=True)
class Prepared:
    """What ``publish`` needs: whose record, under which key, where, and its JSON text."""

    repo: str
    url: str
    rkey: str
    record: str

    @property
    def uri(self) -> str:
        """The record's name, for ever."""
        return uri_of(self.repo, self.rkey)

    @property
    def value(self) -> dict[str, object]:
        """The record, its members in the order of the text."""
        value: dict[str, object] = json.loads(self.record)
        return value


def record_key(task: Task) -> str:
    """The key frozen with the job; for a job stored without one, what it would have been."""
    if task.platform_key is not None and tid.is_valid(task.platform_key):
        return task.platform_key
    return tid.of_key(task.key)


def uri_of(repo: str, rkey: str) -> str:
    """An at:// address (https://atproto.com/specs/at-uri-scheme)."""
    return f"at://{repo}/{POST}/{rkey}"


def permalink_of(repo: str, rkey: str) -> str:
    """Where people see the post: by DID, since a handle may change hands."""
    return f"https://bsky.app/profile/{repo}/post/{rkey}"


def prepared_in(task: Task, progress: Progress) -> Prepared | None:
    """What the steps have left in ``progress``, when they are done."""
    repo, url, record = progress.get("repo"), progress.get("url"), progress.get("record")
    if not is_did(repo) or not isinstance(url, str) or not isinstance(record, str):
        return None
    try:
        if not isinstance(json.loads(record), dict):
            return None
    except (ValueError, RecursionError):
        return None
    return Prepared(str(repo), url, record_key(task), record)


def missing_blobs(task: Task, post: Post) -> list[int]:
    """Places of the pictures that are still to be uploaded for the coming attempt.

    A server drops what no record uses, so an upload from before an earlier attempt is made again.
    A blob is named by its bytes: the reference comes back the same, and so does the record.
    """
    there = blobs(task.progress)
    if task.progress.get("uploaded_for") != task.attempts:
        there = {}
    return [place for place in range(len(post.media)) if place not in there]


def blobs(progress: Progress) -> dict[int, Mapping[str, object]]:
    """Blob references by place in the post."""
    kept = progress.get("blobs")
    if not isinstance(kept, Mapping):
        return {}
    return {int(p): b for p, b in kept.items() if p.isdecimal() and is_blob(b)}


def is_blob(value: object) -> bool:
    """Whether ``value`` is a blob reference (https://atproto.com/specs/data-model#blob-type)."""
    if not isinstance(value, Mapping) or value.get("$type") != "blob":
        return False
    ref = value.get("ref")
    return isinstance(ref, Mapping) and isinstance(ref.get("$link"), str)


def with_blob(task: Task, place: int, blob: Mapping[str, object], shape: Shape | None) -> Progress:
    """Progress with one more upload in it."""
    renewed = task.progress.get("uploaded_for") != task.attempts
    kept = {} if renewed else blobs(task.progress)
    shapes = task.progress.get("shapes")
    shown = dict(shapes) if isinstance(shapes, Mapping) else {}
    if shape is not None:
        shown[str(place)] = [shape.width, shape.height]
    return {
        **task.progress,
        "uploaded_for": task.attempts,
        "blobs": {str(at): kept[at] for at in sorted(kept)} | {str(place): dict(blob)},
        "shapes": shown,
    }


def mentions(progress: Progress) -> dict[str, str | None]:
    """DIDs by handle; None for a handle that leads to nobody."""
    kept = progress.get("mentions")
    if not isinstance(kept, Mapping):
        return {}
    return {handle: did if is_did(did) else None for handle, did in kept.items()}


def unresolved(post: Post, progress: Progress) -> list[str]:
    """Handles in the text that nobody was asked about yet."""
    known = mentions(progress)
    return [handle for handle in facets.handles(post.text) if handle not in known]


def build(task: Task, post: Post, progress: Progress) -> str:
    """The record as JSON text, from nothing that may differ on another day."""
    record: dict[str, object] = {
        "$type": POST,
        "text": post.text,
        "createdAt": tid.instant(record_key(task)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
    }
    if found := facets.facets(post.text, mentions(progress)):
        record["facets"] = found
    if post.media:
        record["embed"] = _images(post, progress)
    elif post.link is not None:
        record["embed"] = _card(post.link)
    return canonical(record)


def _images(post: Post, progress: Progress) -> dict[str, object]:
    there, images = blobs(progress), []
    shapes = progress.get("shapes")
    for place, item in enumerate(post.media):
        image: dict[str, object] = {"alt": item.alt, "image": there[place]}
        shape = shapes.get(str(place)) if isinstance(shapes, Mapping) else None
        if isinstance(shape, list):
            image["aspectRatio"] = {"width": shape[0], "height": shape[1]}
        images.append(image)
    return {"$type": "app.bsky.embed.images", "images": images}


def _card(link: str) -> dict[str, object]:
    """A link card with the site's name for a title.

    Clients fill a card from the page behind the link. We do not read it: a page may say something
    else on the next attempt, and what was approved is the address. Bluesky wants a title and a
    description all the same; the host is true, and repeating the text would only say it twice.
    """
    host = urlsplit(link).hostname or link
    card = {"uri": link, "title": host.removeprefix("www."), "description": ""}
    return {"$type": "app.bsky.embed.external", "external": card}
