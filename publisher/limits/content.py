"""Everything a platform would refuse in a post."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from publisher.engine.adapter import Capabilities, Problem, Severity
from publisher.engine.content import ContentError, Media, Post
from publisher.limits import link, media, text
from publisher.limits.media import Measures
from publisher.words import _

_NOTHING_MEASURED: Final[Mapping[str, Measures]] = {}


def problems(
    post: Post, can: Capabilities, measured: Mapping[str, Measures] = _NOTHING_MEASURED
) -> tuple[Problem, ...]:
    """Say everything that is wrong with ``post`` for one platform, notes included.

    ``can`` has to be of the post's own format. ``measured``: what is known of its files, by
    ``sha256`` or ``url``. Text, link and media are judged apart, so one fault hides no other;
    a text past counting is not counted.
    """
    if not can.takes_posts:
        what = _("{name} takes no posts.").format(name=text.who(can))
        return (Problem("channel", "channel-takes-no-posts", what, _("Choose another channel.")),)
    found = [*anywhere(post)]
    if not text.is_too_large(post.text):
        found += text.problems(post, can)
    found += link.problems(post, can)
    found += media.problems(post, can, measured)
    return tuple(found)


def anywhere(post: Post) -> tuple[Problem, ...]:
    """What is wrong with ``post`` wherever it goes."""
    return (*text.anywhere(post), *link.anywhere(post.link), *media.anywhere(post))


def of_content(content: str, capabilities: Callable[[str], Capabilities]) -> tuple[Problem, ...]:
    """What an adapter would refuse in content as it is frozen in a job; notes are left out."""
    try:
        post = Post.from_json(content)
    except ContentError as error:
        what = _("This post cannot be read: {why}.").format(why=error)
        return (Problem("content", "content-unreadable", what),)
    found = problems(post, capabilities(content))
    return tuple(problem for problem in found if problem.severity is Severity.FIX)


def shape(post: Post) -> str:
    """Content of the same format and nothing else in it, to ask ``Adapter.capabilities`` about.

    A post that is still to be judged may hold what no content can.
    """
    media = tuple(Media(kind=item.kind, type="") for item in post.media)
    return Post("", "https://example.org" if post.link else None, media).to_json()
