"""A platform whose posts a test puts up; what is read of them is judged as adapters do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from publisher import limits
from publisher.engine.adapter import Capabilities, ChannelHealth, LookQuery, Problem, Promise
from publisher.engine.content import Post
from publisher.engine.evidence import Candidate, NotThisPost
from publisher.engine.job import Channel
from publisher.engine.matching import Sought
from publisher.engine.recognition import not_found, recognise, unreadable
from tests.engine.platform import Fake

TEXT_LIMIT = 300


@dataclass
class Wall(Fake):
    """``shows``: what stands there, by id. ``while_read``: called whenever it is read."""

    can_look: bool = True
    can_delete: bool = True
    shows: dict[str, Candidate] = field(default_factory=dict)
    away: bool = False
    while_read: Callable[[], None] = lambda: None

    def capabilities(self, content: str, progress: object = None) -> Capabilities:  # noqa: ARG002 - as the port has it
        return Capabilities(
            "text",
            "post",
            Promise.AT_MOST_ONCE_WITH_EVIDENCE,
            can_look=self.can_look,
            listing_is_exhaustive=False,
            text_limit=TEXT_LIMIT,
            name="Wall",
            can_delete=self.can_delete,
        )

    def problems(self, content: str) -> tuple[Problem, ...]:
        return limits.of_content(content, self.capabilities)

    def platform_key(self, key: str, at: object) -> str | None:  # noqa: ARG002 - as the port has it
        return None

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:
        self.while_read()
        if self.away:
            return unreadable("nobody answers.")
        post = self.shows.get(given)
        text = Post.from_json(query.task.content).text
        if post is None:
            return not_found("this Page")
        return recognise(Sought(text, query.began_at, query.now), post)

    def check(self, channel: Channel) -> ChannelHealth:
        self.while_read()
        return ChannelHealth(usable=not self.away, detail=f"{channel.remote_id} answers")
