"""What a success is worth: a 200 is no proof that the right post was made.

Servers were seen that made an empty post of a form body, left out unknown media, or answered with
an earlier post. So the answer is held against what was sent, and what does not fit is unknown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from urllib.parse import urlsplit

from publisher.adapters.mastodon.account import Account
from publisher.adapters.mastodon.markup import text_of
from publisher.adapters.mastodon.refusals import seconds_to_rest
from publisher.adapters.mastodon.statuses import Status, attached_ids, created_at, id_of
from publisher.engine.matching import normalised
from publisher.engine.outcome import Published, Reason, Unknown
from publisher.transport import Reply

VISIBILITY = "public"
_SHOWN_AS = {VISIBILITY, "unlisted"}
"""Public posts of an account that is silenced are made unlisted: post_status_service.rb."""

_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_MENTION = re.compile(r"(?<![\w/])@([\w.-]+)@[\w.-]*\w")
_UNSPOKEN = re.compile(r"[\W_]+")
_ID_IN_PIECES = re.compile(r'\s*\{\s*"id"\s*:\s*"([A-Za-z0-9_-]{1,64})"')


def published(account: Account, sent: Mapping[str, object], reply: Reply) -> Published | Unknown:
    """Judge a 2xx answer to ``sent``, the body of the request."""
    body = reply.json()
    status_id = id_of(body) if isinstance(body, dict) else None
    if not isinstance(body, dict) or status_id is None:
        return Unknown(Reason.NO_ID, "The server answered without a post.", answer=reply.answer)
    handle = account.hide(status_id)
    if _account_id(body) != account.id:
        detail = "The server answered with a post that is not this account's."
        return Unknown(Reason.NO_ID, detail, handle, reply.answer)
    wrong = _difference(body, sent)
    if wrong is not None:
        detail = f"The server answered with another post than was sent: {wrong}."
        return Unknown(Reason.NO_ID, detail, handle, reply.answer)
    return Published(
        handle,
        permalink=permalink(account, body),
        at=created_at(body),
        answer=reply.answer,
        not_before=seconds_to_rest(reply),
    )


def handle_in(lost: Unknown) -> str | None:
    """The id in what came of an answer that was cut; a clue, and no more than that."""
    if lost.answer is None or (lost.answer.status or 0) // 100 != 2:  # noqa: PLR2004 - successes
        return None
    found = _ID_IN_PIECES.match(lost.answer.body)
    return None if found is None else found[1]


def permalink(account: Account, status: Status) -> str | None:
    """The address at which people see a status; None when it is none."""
    value = status.get("url")
    if not isinstance(value, str):
        return None
    try:
        scheme = urlsplit(value).scheme
    except ValueError:
        return None
    return account.hide(value) if scheme in ("http", "https") else None


def same_words(sent: str, shown: str) -> bool:
    """Whether ``shown`` could be how a server shows ``sent``, mark-up taken out already.

    Servers shorten links and mentions and some render Markdown, so what is compared are letters
    and digits outside of those. A text without any is the same as one without any.
    """
    if normalised(sent) == normalised(shown):
        return True
    if bool(sent.strip()) != bool(shown.strip()):
        return False
    return _words(sent) == _words(shown)


def _words(text: str) -> str:
    plain = _MENTION.sub(r"@\1", _ADDRESS.sub(" ", text))
    folded = unicodedata.normalize("NFKD", plain).casefold()
    kept = "".join(c for c in folded if not unicodedata.combining(c))
    return _UNSPOKEN.sub("", kept)


def _difference(status: Status, sent: Mapping[str, object]) -> str | None:
    """What makes ``status`` another post than ``sent``, in words; None when nothing does."""
    content, text = status.get("content"), sent["status"]
    if not isinstance(content, str) or not same_words(str(text), text_of(content)):
        return "its text differs"
    media = sent.get("media_ids", [])
    wanted = frozenset(media) if isinstance(media, list) else frozenset()
    if attached_ids(status) != wanted:
        return "its media differ"
    if status.get("visibility") not in _SHOWN_AS:
        return "it is not public"
    if status.get("in_reply_to_id") or status.get("reblog"):
        return "it is a reply or a boost"
    return None


def _account_id(status: Status) -> str | None:
    account = status.get("account")
    value = account.get("id") if isinstance(account, dict) else None
    return value if isinstance(value, str) else None
