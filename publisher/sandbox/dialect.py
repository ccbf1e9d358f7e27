"""The port between the core and the dialects: what a platform's API has to tell the sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from publisher.sandbox.plan import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from publisher.sandbox.behaviours import Endpoint
    from publisher.sandbox.journal import Fact
    from publisher.sandbox.pages import Page, Pages, Post
    from publisher.sandbox.plan import Treatment
    from publisher.sandbox.platform import Platform
    from publisher.sandbox.wire import Answer, Head


class Complaint(StrEnum):
    """What a platform can say is wrong, whether it is or not; each words it in its own way."""

    BROKEN = "broken"
    LIMITED = "limited"
    INVALID = "invalid"
    TOKEN = "token"  # noqa: S105  a word, not one of them
    DUPLICATE = "duplicate"


class Refusal(Exception):
    """A call is refused, and nothing was stored."""

    def answer(self, request: str) -> Answer:
        """Return the answer in the words of its platform; ``request`` is the request's id."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for, in words that all platforms share; the log keeps just this.

    Before the body of a request is read it is known only in part: where to, and mostly by whom.
    """

    method: str
    path: str
    """Without a token in it."""
    page: str | None
    """The account it is about, None when that is not known (yet)."""
    endpoint: Endpoint
    publishes: bool = False
    """Whether it puts a post on a page when it is accepted."""
    message: str = ""
    link: str | None = None
    media: tuple[str, ...] = ()
    client_mutation_id: str | None = None
    """The sender's own key for it: an idempotency key, a record key."""

    def target(self) -> Target:
        """Return what a plan looks at."""
        return Target(self.page, self.endpoint, self.publishes, self.message)

    def fact(self, request: str, behaviour: str) -> Fact:
        """Return the line the log keeps of this request. The token is not in it."""
        return {
            "fact": "request", "request": request, "method": self.method, "path": self.path,
            "page": self.page, "endpoint": self.endpoint, "publishes": self.publishes,
            "message": self.message, "link": self.link, "media": list(self.media),
            "client_mutation_id": self.client_mutation_id, "behaviour": behaviour,
        }  # fmt: skip


class Call(Protocol):
    """One call, read whole. A dialect's own class has more."""

    @property
    def request(self) -> str:
        """Random id of the request."""

    @property
    def asked(self) -> Asked:
        """What it asks for."""


C = TypeVar("C", bound=Call)


class Dialect(Protocol[C]):
    """One platform's API. The name is also the ``platform`` of its accounts."""

    name: str
    noun: str
    """What its accounts are called on the wall: ``Pages``, ``Telegram channels``."""
    refuses_duplicates: bool

    def route(self, head: Head, state: Pages) -> Asked | None:
        """Return what a request asks for, as far as its head tells; None: not this platform's."""

    def read(self, request: str, asked: Asked, head: Head, body: bytes, state: Pages) -> C:
        """Read a whole call. Raises ``UnreadableForm``."""

    def perform(self, call: C, done: Treatment, platform: Platform) -> Answer:
        """Do what a call asks, in the way ``done`` says, and return the true answer.

        Raises ``Refusal`` with nothing stored, ``UnreadableForm``. What was stored is queued for
        the log; the caller waits for its own later fact.
        """

    def complain(self, complaint: Complaint, call: C, done: Treatment) -> Answer:
        """Return the platform's own error; ``done.error`` replaces parts of it."""

    def unreadable(self, request: str, reason: str) -> Answer:
        """Return the answer to a call whose parameters cannot be read."""

    def without_id(self) -> Answer:
        """Return a success that says nothing of what was made."""

    def older(self, call: C, post: Post, platform: Platform) -> Answer:
        """Return the answer that ``post`` would have had, for a call that made another."""

    def finish(self, answer: Answer, call: C, platform: Platform) -> None:
        """Add the headers that every answer of the platform carries."""

    def default_account(self, number: int) -> tuple[Page, str]:
        """Return the ``number``-th made-up account, counted from 1, and its token."""

    def account(self, given: Mapping[str, Any], number: int) -> tuple[Page, str]:
        """Return the account a control call describes, made up where it says nothing.

        Raises ``ValueError``.
        """

    def configure(self, page: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
        """Change how the platform treats one account, or all; return what holds then.

        Raises ``ValueError``.
        """

    def identify(self, post: Post, state: Pages) -> Post:
        """Give a post that comes from elsewhere its id, and what else the platform adds."""

    def land(self, post: Post, state: Pages) -> Post | None:
        """Return a late post as it is stored now; None when the platform has it already."""

    def locate(self, path: str, state: Pages) -> Page | Post | None:
        """Return the account or post at an address that people use on this platform."""

    def address(self, post: Post, state: Pages) -> str:
        """Return the path of a post's permalink."""
