"""Taking a post down again, as a job like any other: what it is made of, and how it is sent.

A removal asks for an end and not for a thing: asked twice, the page is the same. So its doubts have
a way out that a post's have not. Where the platform lets it be repeated (``Capabilities.
delete_repeats``), the reconciler has it repeated; where it does not, a look at the page decides.
A post that is gone is a removal that went through, whoever took it down; one that is there is one
that did not.

``Removing`` stands around an adapter and sends removals by its ``withdraw``. Everything else goes
to the adapter untouched.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Self, assert_never

from publisher.engine.adapter import (
    Adapter,
    Capabilities,
    ChannelHealth,
    LivePost,
    LookQuery,
    Problem,
    Progress,
    Promise,
    Ready,
    SendPermit,
    Step,
    Task,
)
from publisher.engine.content import digest
from publisher.engine.errors import PermitError
from publisher.engine.evidence import (
    Absent,
    Candidate,
    Evidence,
    Found,
    Inconclusive,
    Mismatch,
    NotThisPost,
)
from publisher.engine.job import DELETE, Channel, public_id
from publisher.engine.outcome import (
    AlreadyGone,
    CannotWithdraw,
    Deferred,
    NotWithdrawn,
    Outcome,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
    Withdrawal,
    Withdrawn,
)
from publisher.words import _

FORMAT: Final = "removal"
_FIELD: Final = "removes"
_ROW: Final = "withdraw"
_NOT_SHOWN: Final = (Mismatch.UNREADABLE, Mismatch.NO_LINK, Mismatch.ANOTHER_PAGE)


@dataclass(frozen=True, slots=True)
class Removal:
    """The content of a ``delete`` job: the post that goes, and who asked for it.

    ``job``: public id of the job that put it there, ``key`` and ``platform_key`` that job's own.
    ``content`` was sent; ``answer``: the body of the platform's answer to it, as it was kept.
    """

    job: str
    key: str
    remote_id: str
    content: str = field(repr=False)
    asked_by: str
    answer: str = field(default="", repr=False)
    platform_key: str | None = None
    reason: str = ""

    @property
    def post(self) -> LivePost:
        """What an adapter is asked to take down."""
        return LivePost(self.remote_id, self.content, self.answer)

    def to_json(self) -> str:
        """The canonical text that is frozen into the job."""
        parts = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps({_FIELD: parts}, ensure_ascii=False, sort_keys=True)

    @classmethod
    def read(cls, content: str) -> Self | None:
        """What ``to_json`` wrote; None for any other content."""
        try:
            told = json.loads(content)
        except ValueError:
            return None
        parts = told.get(_FIELD) if isinstance(told, dict) and len(told) == 1 else None
        if not isinstance(parts, dict) or set(parts) != set(cls.__slots__):
            return None
        return cls(**parts)


class Removing:
    """``adapter``, which sends removals as well."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    @property
    def platform(self) -> str:
        """See ``Adapter.platform``."""
        return self._adapter.platform

    def capabilities(self, content: str, progress: Progress | None = None) -> Capabilities:
        """What the platform can do; of a removal, what it can do about the post that goes."""
        removal = _of(content)
        if removal is None:
            return self._adapter.capabilities(content, progress)
        can = self._adapter.capabilities(removal.content)
        return replace(
            can,
            format=FORMAT,
            noun=_("deletion"),
            promise=Promise.EXACTLY_ONCE if can.delete_repeats else can.promise,
            listing_is_exhaustive=can.can_look,
            repeat_for=math.inf if can.delete_repeats else None,
            repeat_is_atomic=can.delete_repeats,
        )

    def problems(self, content: str) -> tuple[Problem, ...]:
        """See ``Adapter.problems``; nothing is wrong with a removal by itself."""
        return () if _of(content) is not None else self._adapter.problems(content)

    def platform_key(self, key: str, at: datetime) -> str | None:
        """See ``Adapter.platform_key``. A removal is known by its post: its key says which."""
        return key if key.startswith(f"{DELETE}:") else self._adapter.platform_key(key, at)

    def prepared(self, task: Task) -> Ready | None:
        """See ``Adapter.prepared``. Nothing comes before a removal."""
        return Ready({}) if task.kind == DELETE else self._adapter.prepared(task)

    def step(self, task: Task) -> Step:
        """See ``Adapter.step``."""
        return Ready({}) if task.kind == DELETE else self._adapter.step(task)

    def publish(self, task: Task, ready: Ready, permit: SendPermit) -> Outcome:
        """See ``Adapter.publish``. A removal uses its permit up before anything is asked.

        An album is as many requests as it has messages, and a session may have to be renewed; so
        whatever goes wrong from then on counts as sent.
        """
        if task.kind != DELETE:
            return self._adapter.publish(task, ready, permit)
        removal = _of(task.content)
        if removal is None or permit.token != task.token or permit.job_id != task.job_id:
            return Deferred(Reason.NOT_STARTED, "This is no removal that the permit is for.")
        try:
            permit.use()
        except PermitError as error:
            return Deferred(Reason.PERMIT_LATE, str(error) or "its permit was over")
        return _outcome(self._adapter.withdraw(task.channel, removal.post), task)

    def look(self, query: LookQuery) -> Evidence:
        """See ``Adapter.look``. Of a removal: ``Found`` once the post is gone from its page."""
        removal = _of(query.task.content) if query.task.kind == DELETE else None
        if removal is None:
            return self._adapter.look(query)
        channel = query.task.channel
        shown = self._adapter.identify(_of_the_post(query, removal), removal.remote_id)
        if isinstance(shown, NotThisPost) and shown.code in _NOT_SHOWN:
            return Inconclusive(shown.message)
        if not isinstance(shown, NotThisPost) or shown.code is not Mismatch.NOT_FOUND:
            return Absent(searched=1)
        # "No such post" is also what some platforms say to a credential that opens nothing.
        health = self._adapter.check(channel)
        if not health.usable:
            return Inconclusive(health.detail)
        return Found(_remote_id(query.task))

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:
        """See ``Adapter.identify``. A removal leaves nothing behind that could be named."""
        if query.task.kind != DELETE:
            return self._adapter.identify(query, given)
        message = _("A deletion leaves no link. If you saw that the post is gone, attest that.")
        return NotThisPost(Mismatch.NO_LINK, message)

    def withdraw(self, channel: Channel, post: LivePost) -> Withdrawal:
        """See ``Adapter.withdraw``."""
        return self._adapter.withdraw(channel, post)

    def check(self, channel: Channel) -> ChannelHealth:
        """See ``Adapter.check``."""
        return self._adapter.check(channel)


def _of(content: str) -> Removal | None:
    # Asked of every content, often: most are told apart by their first bytes.
    return Removal.read(content) if content.startswith(f'{{"{_FIELD}"') else None


def _remote_id(task: Task) -> str:
    """What a removal that went through is bound by: its own, for the post's is the post's."""
    return f"removed:{public_id(task.job_id)}"


def _of_the_post(query: LookQuery, removal: Removal) -> LookQuery:
    """The question whether the post itself is there, its own age beside the point."""
    task = replace(
        query.task,
        key=removal.key,
        content=removal.content,
        content_sha256=digest(removal.content),
        platform_key=removal.platform_key,
        progress={},
    )
    return replace(query, task=task, bound=frozenset())


def _outcome(end: Withdrawal, task: Task) -> Outcome:
    match end:
        case Withdrawn() | AlreadyGone():
            return Published(_remote_id(task))
        case CannotWithdraw(NotWithdrawn.UNCLEAR, detail):
            return Unknown(Reason.REMOVAL_UNCLEAR, detail)
        case CannotWithdraw(NotWithdrawn.RATE_LIMITED, detail, seconds):
            return Deferred(
                Reason.RATE_LIMITED,
                detail,
                proof=Proof.REFUSED,
                row=f"{_ROW}:{end.reason}",
                retry_after=seconds,
                validated_before_storing=True,
            )
        case CannotWithdraw(NotWithdrawn.NEEDS_RECONNECTING, detail):
            return Unauthorized(
                Reason.NEEDS_RECONNECTING,
                detail,
                row=f"{_ROW}:{end.reason}",
                validated_before_storing=True,
            )
        case CannotWithdraw(reason, detail):  # unsupported, or refused
            return Rejected(
                Reason.REMOVAL_REFUSED,
                detail,
                row=f"{_ROW}:{reason}",
                validated_before_storing=True,
            )
        case _:  # pragma: no cover - mypy proves that nothing gets here
            assert_never(end)
