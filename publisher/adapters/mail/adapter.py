"""The adapter: a channel is a mailbox we write from, and its credential the relay that takes it.

One job is one message to one recipient. Nobody can be asked afterwards whether a relay has it, so
a lost answer stays a doubt and is never sent again by the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from publisher.adapters.mail.letters import CAPABILITIES, envelope, message_id, problems
from publisher.engine.adapter import (
    Capabilities,
    ChannelHealth,
    LivePost,
    LookQuery,
    Problem,
    Progress,
    Ready,
    SendPermit,
    Step,
    Task,
)
from publisher.engine.content import Letter
from publisher.engine.errors import PublisherError
from publisher.engine.evidence import Candidate, Evidence, Inconclusive, NotThisPost
from publisher.engine.job import Channel
from publisher.engine.outcome import (
    CannotWithdraw,
    Deferred,
    NotWithdrawn,
    Outcome,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Withdrawal,
)
from publisher.engine.recognition import no_link
from publisher.mailer import BadRelay, Mailer, Relay, Taken
from publisher.mailer.relay import is_address
from publisher.words import _


@dataclass(frozen=True, slots=True)
class _Closed:
    """Why a channel's access cannot be used: ``lasting`` until a person reconnects it."""

    detail: str
    lasting: bool = True

    def outcome(self) -> Unauthorized | Deferred:
        if self.lasting:
            return Unauthorized(Reason.NEEDS_RECONNECTING, self.detail)
        return Deferred(Reason.BUSY, self.detail)


class Mail:
    """Implements ``engine.adapter.Adapter`` for mail.

    A channel's ``remote_id`` is the address it writes from. ``vault_open`` gives the relay with
    its user and password, as ``Relay.read`` has it.
    """

    platform = "mail"

    def __init__(self, mailer: Mailer, vault_open: Callable[[Channel], str]) -> None:
        self._mailer = mailer
        self._vault_open = vault_open

    def capabilities(
        self,
        content: str,  # noqa: ARG002 - the port's; every mail is alike
        progress: Progress | None = None,  # noqa: ARG002
    ) -> Capabilities:
        """See ``Adapter.capabilities``."""
        return CAPABILITIES

    def problems(self, content: str) -> tuple[Problem, ...]:
        """See ``Adapter.problems``."""
        return problems(content)

    def platform_key(self, key: str, at: datetime) -> str | None:  # noqa: ARG002 - the port's
        """None: a relay takes the same Message-ID as often as it is given it."""
        return None

    def prepared(self, task: Task) -> Ready | None:
        """``Ready`` at once, or None where a step has to say what is wrong."""
        if problems(task.content) or isinstance(self._relay(task.channel), _Closed):
            return None
        return Ready(task.progress)

    def step(self, task: Task) -> Step:
        """Say what is wrong; there is nothing else to do before a mail."""
        found = problems(task.content)
        if found:
            detail = " ".join(problem.message for problem in found)
            return Rejected(Reason.CONTENT_REFUSED, detail)
        relay = self._relay(task.channel)
        return relay.outcome() if isinstance(relay, _Closed) else Ready(task.progress)

    def publish(self, task: Task, ready: Ready, permit: SendPermit) -> Outcome:  # noqa: ARG002
        """Hand the mail to the relay, once."""
        if not _is_for(permit, task):
            return Deferred(Reason.NOT_STARTED, "The permit is for another attempt or content.")
        relay = self._relay(task.channel)
        if isinstance(relay, _Closed):
            # Not Unauthorized: a refusal of the relay's would be the proof then, and nobody was
            # asked. The next ``prepared`` finds the same, and ``step`` says so.
            return Deferred(Reason.NEEDS_RECONNECTING, relay.detail)
        sender = task.channel.remote_id
        try:
            letter = envelope(task.key, sender, Letter.from_json(task.content))
        except ValueError:
            return Deferred(Reason.NOT_STARTED, "This mail cannot be written.")
        handed = self._mailer.send(letter, relay, permit)
        if isinstance(handed, Taken):
            return Published(message_id(task.key, sender), answer=handed.answer)
        return handed

    def look(self, query: LookQuery) -> Evidence:  # noqa: ARG002 - the port's
        """Nothing to read: a relay lists no messages."""
        return Inconclusive("this platform cannot be looked up")

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:
        """Take the Message-ID of this very mail, such as its recipient sees; it is no other's."""
        own = message_id(query.task.key, query.task.channel.remote_id)
        if given.strip().strip("<>") != own.strip("<>"):
            return no_link(given.strip(), _("mail"), own)
        return Candidate(remote_id=own, text="", created_at=query.began_at)

    def withdraw(self, channel: Channel, post: LivePost) -> Withdrawal:  # noqa: ARG002 - the port's
        """Nothing can be done: what a relay has taken is on its way."""
        return CannotWithdraw(NotWithdrawn.UNSUPPORTED, "A mail that was sent stays sent.")

    def check(self, channel: Channel) -> ChannelHealth:
        """Greet the relay and show our access; no mail is begun."""
        relay = self._relay(channel)
        if isinstance(relay, _Closed):
            return ChannelHealth(usable=False, detail=relay.detail)
        wrong = self._mailer.check(relay)
        if wrong is not None:
            return ChannelHealth(usable=False, detail=f"The relay cannot be used: {wrong}.")
        return ChannelHealth(usable=True, detail=f"{relay.host} takes our mail.")

    def _relay(self, channel: Channel) -> Relay | _Closed:
        """The channel's relay with its access, or why there is none."""
        try:
            credential = self._vault_open(channel)
        except OSError:
            return _Closed("The stored access could not be read just now.", lasting=False)
        except PublisherError as error:
            return _Closed(str(error))
        except Exception:  # noqa: BLE001 - whatever else a vault raises may hold secrets
            return _Closed("The stored access of this mailbox cannot be opened.")
        if not is_address(channel.remote_id):
            return _Closed("The address this mailbox writes from is none.")
        try:
            return Relay.read(credential, trusted=channel.trusted)
        except BadRelay as error:
            return _Closed(f"The stored access of this mailbox is not a relay. {error}")


def _is_for(permit: SendPermit, task: Task) -> bool:
    return (permit.job_id, permit.token, permit.channel_id, permit.content_sha256) == (
        task.job_id,
        task.token,
        task.channel.id,
        task.content_sha256,
    )
