"""Uploaded files, kept in progress by the place each has in the post.

An upload that is still being processed has an id already, and is polled until it may be attached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from publisher.engine.adapter import Progress
from publisher.engine.content import Post

_KEY = "media"


@dataclass(frozen=True, slots=True)
class Upload:
    """One file on the server. ``tries``: how often it was uploaded, for one that gets lost."""

    id: str
    ready: bool
    tries: int = 1


def uploads(post: Post, progress: Progress) -> dict[int, Upload]:
    """What is uploaded, by index in ``post.media``; what cannot be read is left out."""
    kept = progress.get(_KEY)
    if not isinstance(kept, Mapping):
        return {}
    found: dict[int, Upload] = {}
    for index in range(len(post.media)):
        entry = kept.get(str(index))
        if not isinstance(entry, Mapping):
            continue
        id_, ready, tries = entry.get("id"), entry.get("ready"), entry.get("tries")
        if isinstance(id_, str) and id_:
            count = tries if isinstance(tries, int) else 1
            found[index] = Upload(id_, ready is True, count)
    return found


def unready(post: Post, progress: Progress) -> list[int]:
    """Indexes of files that are not uploaded, or still being processed."""
    there = uploads(post, progress)
    return [i for i in range(len(post.media)) if i not in there or not there[i].ready]


def media_ids(post: Post, progress: Progress) -> list[str]:
    """Ids of the uploads in the order of the post."""
    there = uploads(post, progress)
    return [there[index].id for index in sorted(there)]


def keep(post: Post, progress: Progress, index: int, upload: Upload) -> Progress:
    """``progress`` with one upload more, or changed."""
    there = uploads(post, progress) | {index: upload}
    kept = {
        str(at): {"id": there[at].id, "ready": there[at].ready, "tries": there[at].tries}
        for at in sorted(there)
    }
    return {**progress, _KEY: kept}
