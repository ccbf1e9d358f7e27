"""What the sandbox can do to a request, each thing by its name.

The names are used in plans, in text triggers (``#sandbox:lose-answer``) and in the log.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Kind(StrEnum):
    """What a behaviour leaves the sender with."""

    PLAIN = "plain"
    """Done, and said so."""
    LOST_ANSWER = "lost-answer"
    """Done, but the answer is missing, late, broken or says nothing of it."""
    FALSE_REFUSAL = "false-refusal"
    """Done, and the answer says it was refused."""
    FALSE_SUCCESS = "false-success"
    """Not done, and the answer says it was."""
    REFUSAL = "refusal"
    """Not done, and said so."""
    SILENCE = "silence"
    """Not done, and the answer does not say which."""
    LISTING = "listing"
    """The page is right, what is read of it is not."""
    AFTERMATH = "aftermath"
    """Something else happens to the page as well."""


class Behaviour(StrEnum):
    """One way to treat a request.

    ``accepts``: the post is on the page, or will be. ``kind``: what the sender is left with.
    ``seconds``: the default of a rule's ``seconds``, for behaviours that take time. A behaviour
    that accepts does what the endpoint does; on a read that is nothing, and only the answer
    is spoiled.
    """

    kind: Kind
    accepts: bool
    seconds: float

    def __new__(
        cls,
        value: str,
        kind: Kind,
        accepts: bool,  # noqa: FBT001  a column of the table below
        line: str,
        seconds: float = 0.0,
    ) -> Self:
        """Make a member of a row of the table: name, kind, accepts, docstring, seconds."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.kind = kind
        member.accepts = accepts
        member.__doc__ = line
        member.seconds = seconds
        return member

    @classmethod
    def named(cls, name: str) -> Behaviour:
        """Return the behaviour of that name. Raises ``ValueError`` that lists the names."""
        for behaviour in cls:
            if behaviour == name:
                return behaviour
        reason = f"There is no behaviour {name!r}. There are: {', '.join(cls)}."
        raise ValueError(reason)

    # fmt: off
    ANSWER = "answer", Kind.PLAIN, True, "Accept and answer."
    ANSWER_SLOWLY = (
        "answer-slowly", Kind.LOST_ANSWER, True,
        "Accept, and answer only after some seconds.", 10.0,
    )
    LOSE_ANSWER = (
        "lose-answer", Kind.LOST_ANSWER, True,
        "Accept, then close the connection (FIN) without an answer.",
    )
    ACCEPT_AND_RESET = (
        "accept-and-reset", Kind.LOST_ANSWER, True,
        "Accept, then cut the connection (RST) without an answer.",
    )
    HALF_ANSWER = (
        "half-answer", Kind.LOST_ANSWER, True,
        "Accept, send the head and half the JSON, then close.",
    )
    GARBAGE_ANSWER = (
        "garbage-answer", Kind.LOST_ANSWER, True,
        "Accept, and answer with bytes that are not HTTP.",
    )
    ACCEPT_AND_500 = (
        "accept-and-500", Kind.LOST_ANSWER, True,
        "Accept, and answer HTTP 500 (Graph: code 2, is_transient).",
    )
    ACCEPT_AND_502 = (
        "accept-and-502", Kind.LOST_ANSWER, True,
        "Accept, and answer 502 with a gateway's HTML.",
    )
    ACCEPT_AND_504 = (
        "accept-and-504", Kind.LOST_ANSWER, True,
        "Accept, and answer 504 with a gateway's HTML.",
    )
    ACCEPT_AND_LIMIT = (
        "accept-and-limit", Kind.FALSE_REFUSAL, True,
        "Accept, and answer that the rate limit was reached (429; Graph: 400, code 4).", 60.0,
    )
    ACCEPT_AND_REFUSE = (
        "accept-and-refuse", Kind.FALSE_REFUSAL, True,
        "Accept, and answer as if it had been refused (Graph: 400, code 100).",
    )
    ANSWER_WITHOUT_ID = (
        "answer-without-id", Kind.LOST_ANSWER, True,
        "Accept, and answer 200 without an id.",
    )
    ACCEPT_LATE = (
        "accept-late", Kind.LOST_ANSWER, True,
        "Close without an answer, and put the post on the page some seconds later.", 5.0,
    )
    ACCEPT_AND_HANG = (
        "accept-and-hang", Kind.LOST_ANSWER, True,
        "Accept, and never answer; the connection stays open.", 3600.0,
    )
    GZIP_BOMB = (
        "gzip-bomb", Kind.LOST_ANSWER, True,
        "Accept, and answer with a small gzip body that unpacks to 256 MiB.",
    )
    ENDLESS_BODY = (
        "endless-body", Kind.LOST_ANSWER, True,
        "Accept, and send a body that does not end.", 3600.0,
    )
    HEADER_DRIBBLE = (
        "header-dribble", Kind.LOST_ANSWER, True,
        "Accept, and send the head of the answer a byte at a time.", 60.0,
    )
    OLDER_ID = (
        "older-id", Kind.FALSE_SUCCESS, False,
        "Do not accept; answer 200 with the id of an older post of the same application.",
    )
    REFUSE_INVALID = (
        "refuse-invalid", Kind.REFUSAL, False, "Refuse as invalid (Graph: 400, code 100).",
    )
    REFUSE_LIMITED = (
        "refuse-limited", Kind.REFUSAL, False,
        "Refuse as over a rate limit, saying until when (429; Graph: 400, code 4).", 60.0,
    )
    REFUSE_429 = (
        "refuse-429", Kind.REFUSAL, False, "Refuse with HTTP 429 and no word of until when.",
    )
    REFUSE_429_RETRY_AFTER = (
        "refuse-429-retry-after", Kind.REFUSAL, False,
        "Refuse with HTTP 429 and a Retry-After.", 60.0,
    )
    REFUSE_TOKEN = (
        "refuse-token", Kind.REFUSAL, False,
        "Refuse the token (401; Graph: code 190, subcode 463; Bluesky: 400 ExpiredToken).",
    )
    REFUSE_DUPLICATE = (
        "refuse-duplicate", Kind.REFUSAL, False,
        "Refuse as a duplicate (Graph: 506), only when the same text is on the page.",
    )
    REFUSE_DUPLICATE_FALSELY = (
        "refuse-duplicate-falsely", Kind.REFUSAL, False,
        "Refuse as a duplicate (Graph: 506) though the text may not be on the page.",
    )
    REDIRECT_307 = (
        "redirect-307", Kind.SILENCE, False,
        "Do not accept; answer 307. Who follows it sends a second time.",
    )
    FAIL_500 = (
        "fail-500", Kind.SILENCE, False, "Do not accept; answer HTTP 500 (Graph: code 2).",
    )
    DROP = "drop", Kind.SILENCE, False, "Do not accept; close without an answer."
    HANG = (
        "hang", Kind.SILENCE, False,
        "Do not accept and never answer; the connection stays open.", 3600.0,
    )
    RESET_UNREAD = (
        "reset-unread", Kind.SILENCE, False,
        "Do not accept; cut the connection (RST), before the body is read where possible.",
    )
    LISTING_DELAYED = (
        "listing-delayed", Kind.LISTING, False,
        "Leave posts out of the listing that are younger than some seconds.", 10.0,
    )
    LISTING_GAP = (
        "listing-gap", Kind.LISTING, False,
        "Leave the newest page of the listing out, and say nothing of it.",
    )
    UNREADABLE = (
        "unreadable", Kind.LISTING, True,
        "Accept and answer; reading that post by its id fails for ever, as if it were not there.",
    )
    TWIN = (
        "twin", Kind.AFTERMATH, False,
        "Do not accept, close without an answer; someone else posts the same text.",
    )
    ACCEPT_WITH_TWIN = (
        "accept-with-twin", Kind.AFTERMATH, True,
        "Accept, close without an answer; someone else posts the same text too.",
    )
    REMOVE_AT_ONCE = (
        "remove-at-once", Kind.AFTERMATH, True,
        "Accept and answer; the platform takes the post down at once.",
    )
    # fmt: on


class Endpoint(StrEnum):
    """What a request asks for. In rules also ``publish`` (a call that publishes) and ``any``."""

    FEED = "feed"
    PHOTOS = "photos"
    VIDEOS = "videos"
    LIST = "list"
    READ = "read"
    DELETE = "delete"
    POST = "post"
    """Bluesky, Mastodon, Telegram: the call that makes a post."""
    MEDIA = "media"
    """Uploading a blob or a medium."""
    MEDIA_STATE = "media-state"
    """Asking whether an upload has been processed, or describing it."""
    SESSION = "session"
    """Making or renewing a session."""
    ACCOUNT = "account"
    """Reading about the account, the server or the bot."""
    PUBLISH = "publish"
    ANY = "any"


_PUBLISH_ONLY = frozenset({
    Behaviour.ACCEPT_LATE, Behaviour.OLDER_ID, Behaviour.REFUSE_DUPLICATE,
    Behaviour.REFUSE_DUPLICATE_FALSELY, Behaviour.TWIN, Behaviour.ACCEPT_WITH_TWIN,
    Behaviour.REMOVE_AT_ONCE,
})  # fmt: skip
_LIST_ONLY = frozenset({Behaviour.LISTING_DELAYED, Behaviour.LISTING_GAP})


def suits(behaviour: Behaviour, endpoint: Endpoint, *, publishes: bool) -> bool:
    """Say whether ``behaviour`` means anything for a request to ``endpoint``."""
    if behaviour in _PUBLISH_ONLY:
        return publishes
    if behaviour in _LIST_ONLY:
        return endpoint is Endpoint.LIST
    if behaviour is Behaviour.UNREADABLE:
        return publishes or endpoint is Endpoint.READ
    return True
