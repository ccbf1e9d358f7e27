"""The ids of uploaded photos, kept in progress by the place a photo has in the post."""

from __future__ import annotations

import json
from collections.abc import Mapping

from publisher.engine.adapter import More, Progress, Ready
from publisher.engine.content import Post

_KEY = "photos"


def photo_ids(post: Post, progress: Progress) -> dict[int, str]:
    """Ids of the photos that are uploaded, by index in ``post.media``."""
    kept = progress.get(_KEY)
    if not isinstance(kept, Mapping):
        return {}
    ids = {index: kept.get(str(index)) for index in _indexes(post)}
    return {index: photo for index, photo in ids.items() if isinstance(photo, str) and photo}


def missing(post: Post, progress: Progress) -> list[int]:
    """Indexes of the photos that are still to be uploaded."""
    there = photo_ids(post, progress)
    return [index for index in _indexes(post) if index not in there]


def with_photo(post: Post, progress: Progress, index: int, photo: str) -> More | Ready:
    """Progress with one photo more; ``Ready`` when it was the last."""
    ids = photo_ids(post, progress) | {index: photo}
    kept = {**progress, _KEY: {str(at): ids[at] for at in sorted(ids)}}
    return More(kept) if missing(post, kept) else Ready(kept)


def attached_media(post: Post, progress: Progress) -> str:
    """The ``attached_media`` parameter: a JSON array, in the order of the post."""
    ids = photo_ids(post, progress)
    return json.dumps([{"media_fbid": ids[index]} for index in _indexes(post)])


def _indexes(post: Post) -> list[int]:
    return [index for index, item in enumerate(post.media) if item.kind == "image"]
