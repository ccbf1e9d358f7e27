"""One job on the screen: the answer first, then the evidence it rests on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Any, Final

from publisher import reasons
from publisher.cli import moments
from publisher.cli.screen import excerpt, visible
from publisher.engine.adapter import Capabilities, Promise
from publisher.engine.content import ContentError, Post
from publisher.engine.job import DELETE, public_id
from publisher.engine.ledger import Doubt
from publisher.engine.outcome import Proof
from publisher.engine.queries import AttemptDetail, JobDetail, LookDetail, Moment
from publisher.engine.removal import Removal
from publisher.standing import OnPage, Standing, stand
from publisher.words import _, many

_LABEL: Final = 10
_TEXT: Final = 60
_BODY: Final = 400
_IDS: Final = 4
_OWN_ROWS: Final = frozenset({"claim", "begin_send", "settle", "look"})
"""Moments that an attempt or a look tells itself."""


def lines(
    detail: JobDetail,
    can: Capabilities | None,
    doubt: Doubt | None,
    *,
    digits: int,
    tries: int,
    horizon: timedelta,
) -> Iterator[str]:
    """The page, line by line.

    ``can``: what the platform can do, where that is known. ``doubt``: for one that may be live.
    """
    yield from evidence(detail, can, doubt, tries=tries, horizon=horizon)
    yield field(_("Next"), "   |   ".join(_next(detail, stand(detail.row, tries=tries), digits)))


def evidence(
    detail: JobDetail,
    can: Capabilities | None,
    doubt: Doubt | None,
    *,
    tries: int,
    horizon: timedelta,
) -> Iterator[str]:
    """The page without what may be done next."""
    at = stand(detail.row, tries=tries)
    of = moments.zone(detail.zone)
    yield _headline(detail, at, of)
    if at.why:
        tried = f" ({at.label})" if detail.row.failures and at.next_at is not None else ""
        yield field(_("Why"), visible(f"{at.why}{tried}"))
    yield from _what_and_where(detail, can, of)
    for attempt in detail.attempts:
        yield from _attempt(attempt, detail, of)
    for number, look in enumerate(detail.looks, 1):
        yield _look(number, look, of)
    yield from _events(detail, of)
    if doubt is not None:
        yield field(_("Sender"), _sender(detail, doubt, horizon, of))
        if doubt.taken_by is not None:
            yield field(_("Taken"), visible(_("by {who}").format(who=doubt.taken_by)))


def as_json(detail: JobDetail) -> dict[str, object]:
    """Everything the page is made from, with ids and times as lists have them.

    ``attempts`` is their number, as in lists; ``sends`` holds each of them.
    """
    parts: dict[str, Any] = _plain(asdict(detail))
    parts["sends"] = parts.pop("attempts")
    for name in ("replaces", "repeats"):
        other = getattr(detail, name)
        parts[name] = None if other is None else public_id(other)
    row = parts.pop("row")
    row["removes"] = None if detail.row.removes is None else public_id(detail.row.removes)
    on_page = str(stand(detail.row, tries=1).on_page)
    return {**row, "id": public_id(detail.row.id), **parts, "on_page": on_page}


def _headline(detail: JobDetail, at: Standing, of: tzinfo) -> str:
    row = detail.row
    is_on_page = {
        OnPage.YES: _("YES, on the page"),
        OnPage.NO: _("NOT on the page"),
        OnPage.MAYBE: _("MAYBE on the page"),
    }[at.on_page]
    parts = [is_on_page]
    if at.on_page is OnPage.YES:
        parts += [_where(detail)]
    else:
        parts += [_("needs a person")] if at.needs_a_person else []
        by_itself = at.by_itself
        if at.next_at is not None:
            local = at.next_at.astimezone(of)
            by_itself += f" {local:%H:%M:%S} {moments.city(of)}"
            by_itself += f" · {moments.relative(at.next_at, row.now)}"
        parts += [by_itself]
    return f"{' · '.join(parts)}          {at.mark} {row.state}"


def _where(detail: JobDetail) -> str:
    """Under which address or id it is there; of a job that is to take it down, the post's."""
    removal = Removal.read(detail.content) if detail.row.kind == DELETE else None
    if removal is not None:
        return removal.remote_id
    return detail.row.permalink or detail.row.remote_id or _("attested by a person")


def _what_and_where(detail: JobDetail, can: Capabilities | None, of: tzinfo) -> Iterator[str]:
    row = detail.row
    yield field(_("Post"), _post(detail, of))
    yield from _content(detail.content)
    yield field(_("Channel"), _channel(detail, can))
    due = moments.long(row.due_at, of, row.now)
    if row.useful_until is not None:
        until = row.useful_until.astimezone(of)
        due += "   " + _("useful until {until}").format(until=f"{moments.day(until)} {until:%H:%M}")
    yield field(_("Due"), due)
    yield field(_("Id"), public_id(row.id))
    yield field(_("Key"), visible(row.key))
    if row.remote_id is not None:
        yield field(_("Remote id"), visible(row.remote_id))
    if detail.replaces is not None:
        yield field(_("Replaces"), public_id(detail.replaces))
    if detail.repeats is not None:
        yield field(_("Repeats"), public_id(detail.repeats))


def _post(detail: JobDetail, of: tzinfo) -> str:
    row = detail.row
    parts = [visible(row.ref) if row.ref else str(row.post_id or row.kind)]
    if detail.version is not None:
        parts.append(_("version {n}").format(n=detail.version))
    sha256 = detail.content_sha256.hex()
    parts.append(f"sha256 {sha256[:4]}…{sha256[-2:]}")
    if detail.approved_at is not None:
        local = detail.approved_at.astimezone(of)
        when = f"{moments.day(local)} {local:%H:%M}"
        parts.append(_("approved {when} by {who}").format(when=when, who=detail.approved_by))
    return "  ".join(parts)


def _content(content: str) -> Iterator[str]:
    if (removal := Removal.read(content)) is not None:
        yield field(_("Deletes"), visible(removal.remote_id))
        yield field(_("Of job"), removal.job)
        why = f": {excerpt(removal.reason, _BODY)}" if removal.reason else ""
        yield field(_("Asked"), visible(_("by {who}").format(who=removal.asked_by)) + why)
        content = removal.content
    try:
        post = Post.from_json(content)
    except ContentError:
        yield field("", excerpt(content, _BODY))
        return
    text = post.text.splitlines() or [""]
    for number, line in enumerate(text):
        yield field(_("Text") if number == 0 else "", f"│ {visible(line)}")
    if post.link:
        yield field(_("Link"), visible(post.link))
    for item in post.media:
        name = item.name or item.url or (item.sha256 or "")[:12]
        alt = f" “{excerpt(item.alt, _TEXT)}”" if item.alt else ""
        yield field(_("Media"), f"{item.kind} {visible(name)}{alt}")


def _channel(detail: JobDetail, can: Capabilities | None) -> str:
    row = detail.row
    name = f"{visible(row.channel)} ({row.platform} {visible(detail.channel_remote_id)})"
    if can is None:
        return name
    promise = {
        Promise.EXACTLY_ONCE: _("exactly once"),
        Promise.SAFE_WHILE_THE_KEY_LIVES: _("safe while the key lives"),
        Promise.AT_MOST_ONCE_WITH_EVIDENCE: _("sent at most once; can be looked up"),
        Promise.AT_MOST_ONCE_WITHOUT_EVIDENCE: _("sent at most once; cannot be looked up"),
    }[can.promise]
    return f"{name}   {can.noun}: {promise}"


def _attempt(attempt: AttemptDetail, detail: JobDetail, of: tzinfo) -> Iterator[str]:
    same = attempt.content_sha256 == detail.content_sha256
    bytes_ = (
        _("same bytes")
        if same
        else _("other bytes: {sha}").format(sha=attempt.content_sha256.hex()[:12])
    )
    version = "" if attempt.version is None else _("version {n}, ").format(n=attempt.version)
    yield _("Attempt {n}  {version}{bytes}").format(n=attempt.number, version=version, bytes=bytes_)
    sender = detail.senders.get(attempt.incarnation)
    run = _("worker run {n}").format(n=attempt.incarnation)
    if sender is not None:
        run += _(", host {host}, pid {pid}").format(host=sender.host, pid=sender.pid)
    yield _moment(attempt.claimed_at, of, _("claimed"), run)
    yield _moment(attempt.begun_at, of, _("begin send"), _begun(attempt))
    if attempt.settled_at is not None:
        yield _moment(attempt.settled_at, of, _outcome_word(attempt), _ended(attempt))
    else:
        yield _moment(None, of, _("no end"), _("nothing is recorded yet of how it ended"))
    yield from _answer(attempt, of)
    yield _proof(attempt, of)


def _begun(attempt: AttemptDetail) -> str:
    sent = (attempt.answer or {}).get("sent")
    if sent is None:
        return _("recorded first; how many bytes left is not known")
    if sent == 0:
        return _("recorded first; then no byte left")
    return many("recorded first, then {n} byte left", "recorded first, then {n} bytes left", sent)


def _outcome_word(attempt: AttemptDetail) -> str:
    words = {
        "published": _("answer"),
        "rejected": _("refused"),
        "deferred": _("not sent") if attempt.proof == Proof.NOT_SENT else _("refused"),
        "unauthorized": _("refused"),
        "unknown": _("doubt"),
    }
    return words.get(attempt.outcome or "", attempt.outcome or "")


def _ended(attempt: AttemptDetail) -> str:
    parts = [reasons.sentence(attempt.reason)] if attempt.reason else []
    if attempt.remote_id is not None:
        parts.append(_("the platform's id is {id}").format(id=attempt.remote_id))
    if attempt.detail:
        parts.append(attempt.detail)
    return excerpt(" ".join(parts), _BODY)


def _answer(attempt: AttemptDetail, of: tzinfo) -> Iterator[str]:
    """What came back, as far as it came."""
    answer = attempt.answer or {}
    if answer.get("status") is not None:
        yield _moment(None, of, _("status"), f"HTTP {answer['status']}")
    elif answer and answer.get("sent") != 0:
        yield _moment(None, of, _("silence"), _("no status line came"))
    if answer.get("body"):
        yield _moment(None, of, _("body"), excerpt(str(answer["body"]), _BODY))
    error = str(answer.get("error") or "")
    if error and error not in (attempt.detail or ""):
        yield _moment(None, of, _("error"), excerpt(error, _BODY))


def _proof(attempt: AttemptDetail, of: tzinfo) -> str:
    if attempt.proof is None:
        says = (
            _("it is live, so nothing is ever sent again")
            if attempt.outcome == "published"
            else _("none, so nothing is sent again")
        )
        return _moment(None, of, _("proof"), says)
    words = {
        Proof.NOT_SENT: _("not sent: no request byte left this machine"),
        Proof.REFUSED: _("refused by the platform"),
        Proof.ABSENT: _("it is not on the page"),
        Proof.REPEAT_SAFE: _("it may be on the page; a repeat cannot double it"),
        Proof.FORCED: _("a person took the risk"),
    }[Proof(attempt.proof)]
    more = f" ({attempt.proof_detail})" if attempt.proof_detail else ""
    by = _(", by {who}").format(who=attempt.proved_by) if attempt.proved_by else ""
    return _moment(attempt.proved_at, of, _("proof"), visible(f"{words}{more}{by}"))


def _look(number: int, look: LookDetail, of: tzinfo) -> str:
    head = _("Look {n}").format(n=number)
    return f"{head:<{_LABEL}}{moments.clock(look.ended_at, of)}  {visible(found(look.evidence))}"


def found(evidence: Mapping[str, Any]) -> str:
    """What a look found, in a line."""
    match evidence.get("kind"):
        case "Found":
            where = evidence.get("permalink") or evidence.get("remote_id")
            return _("found: {where}").format(where=where)
        case "Absent":
            searched = int(evidence.get("searched") or 0)
            return many("not among {n} post", "not among {n} posts", searched)
        case "Inconclusive":
            listed = evidence.get("candidates") or []
            ids = ", ".join(str(item.get("remote_id")) for item in listed[:_IDS])
            more = "" if len(listed) <= _IDS else ", …"
            says = f" ({ids}{more})" if listed else ""
            return excerpt(f"{evidence.get('reason') or ''}{says}", _BODY)
        case _:
            return _short(dict(evidence))


def _events(detail: JobDetail, of: tzinfo) -> Iterator[str]:
    told = [moment for moment in detail.timeline if moment.event not in _OWN_ROWS]
    for number, moment in enumerate(told):
        label = _("Events") if number == 0 else ""
        yield field(label, _event(moment, of))


def _event(moment: Moment, of: tzinfo) -> str:
    detail = ", ".join(f"{name} {_short(value)}" for name, value in moment.detail.items() if value)
    local = moment.at.astimezone(of)
    when = f"{moments.day(local)} {moments.clock(moment.at, of)}"
    return visible(f"{when}  {moment.event}  {moment.who}  {detail}".rstrip())


def _sender(detail: JobDetail, doubt: Doubt, horizon: timedelta, of: tzinfo) -> str:
    """Whether who began the doubtful attempt can still write: it decides what people may do."""
    sender = doubt.sender
    unlocks_at = doubt.unlocks_at(horizon)
    if not sender.run:
        return _("the record of who sent it is lost; sending again stays locked")
    run = _("worker run {n} on {host}").format(n=sender.run, host=visible(sender.host))
    if unlocks_at is None:
        return _("{run} is not proved gone; sending again stays locked").format(run=run)
    if sender.gone_at() == sender.returned_at:
        says = _("{run} came back from this send").format(run=run)
    elif sender.gone_at() == sender.ended_at:
        known = detail.senders.get(sender.run)
        why = visible((known.end_reason if known else None) or "?")
        says = _("{run} has ended ({why})").format(run=run, why=why)
    else:
        says = _("{run} was stated gone by a person").format(run=run)
    if unlocks_at <= doubt.now:
        return _("{says}; sending again is not locked").format(says=says)
    when = f"{unlocks_at.astimezone(of):%H:%M:%S} {moments.city(of)}"
    left = moments.relative(unlocks_at, doubt.now)
    return _("{says}; sending again is locked until {when} · {left}").format(
        says=says, when=when, left=left
    )


def _next(detail: JobDetail, at: Standing, digits: int) -> Iterator[str]:
    name = public_id(detail.row.id)[:digits]
    for verb in at.verbs:
        if verb.startswith("channels "):
            yield f"publisher {verb} {json.dumps(detail.row.channel, ensure_ascii=False)}"
        elif verb.startswith("unknowns "):
            yield f"publisher {verb} {name}"
        elif verb.startswith("quarantine "):
            yield f"publisher {verb}"
        else:
            first, _space, rest = verb.partition(" ")
            yield f"publisher jobs {first} {name} {rest}".rstrip()
    if not at.verbs:
        yield "publisher jobs list"


def field(label: str, text: str) -> str:
    """One line with its label in front."""
    return f"{label:<{_LABEL}}{text}".rstrip()


def _moment(at: datetime | None, of: tzinfo, what: str, says: str) -> str:
    when = "" if at is None else moments.clock(at, of)
    return f"  {when:<12}  {what:<11}  {says}".rstrip()


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return excerpt(text, _BODY)


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON has no narrower type
    match value:
        case datetime():
            return moments.iso(value)
        case bytes():
            return value.hex()
        case StrEnum():
            return str(value)
        case dict():
            return {str(name): _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value
