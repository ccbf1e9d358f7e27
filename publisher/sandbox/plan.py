"""The plan: which request is treated how. Rules first, then triggers in the text, then chance."""

from __future__ import annotations

import hashlib
import random
import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from publisher.sandbox.behaviours import Behaviour, Endpoint, suits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_TRIGGER = re.compile(r"#sandbox:([a-z0-9-]+)(?:=(\d+(?:\.\d+)?))?(?:\*(\d+))?")

_NAMED = {behaviour.value: behaviour for behaviour in Behaviour}


@dataclass(frozen=True, slots=True)
class Target:
    """What a plan sees of a request."""

    page: str | None
    endpoint: Endpoint
    publishes: bool
    message: str


@dataclass(frozen=True, slots=True)
class Treatment:
    """What is done to one request, for how many seconds, with which error put in its place."""

    behaviour: Behaviour = Behaviour.ANSWER
    seconds: float = 0.0
    error: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Rule:
    """One line of a plan: requests that fit, after ``after`` of them, ``times`` times.

    ``page`` and ``times`` unset mean every page and for ever; ``match`` is a part of the message;
    ``error`` replaces parts of the answer's error (``code``, ``error_subcode``, ``message``,
    ``status``) where the behaviour answers with one.
    """

    behaviour: Behaviour
    page: str | None = None
    endpoint: Endpoint = Endpoint.ANY
    times: int | None = 1
    after: int = 0
    seconds: float | None = None
    match: str | None = None
    error: dict[str, Any] = field(default_factory=dict)
    seen: int = 0
    used: int = 0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read a rule; raises ``ValueError`` for unknown names and keys, and values amiss."""
        known = {"behaviour", "page", "endpoint", "times", "after", "seconds", "match", "error"}
        if unknown := sorted(set(data) - known):
            reason = f"A rule has no {unknown[0]!r}; it has {', '.join(sorted(known))}."
            raise ValueError(reason)
        page, seconds, times = data.get("page"), data.get("seconds"), data.get("times", 1)
        return cls(
            behaviour=Behaviour.named(data["behaviour"]),
            page=None if page is None else str(page),
            endpoint=Endpoint(data.get("endpoint") or "any"),
            times=None if times is None else int(times),
            after=int(data.get("after") or 0),
            seconds=None if seconds is None else float(seconds),
            match=data.get("match"),
            error=dict(data.get("error") or {}),
        )

    def to_json(self) -> dict[str, Any]:
        """Show the rule with what it has seen and done."""
        return {
            "page": self.page, "endpoint": self.endpoint, "behaviour": self.behaviour,
            "times": self.times, "after": self.after, "seconds": self.seconds,
            "match": self.match, "error": self.error, "seen": self.seen, "used": self.used,
        }  # fmt: skip

    def fits(self, target: Target) -> bool:
        """Say whether the rule is about this request."""
        if self.page is not None and self.page != target.page:
            return False
        if self.match is not None and self.match not in target.message:
            return False
        if self.endpoint is Endpoint.PUBLISH:
            return target.publishes
        return self.endpoint in (Endpoint.ANY, target.endpoint)

    def take(self) -> Treatment | None:
        """Count one fitting request; return its treatment when it is the rule's turn."""
        if self.times is not None and self.used >= self.times:
            return None
        self.seen += 1
        if self.seen <= self.after:
            return None
        self.used += 1
        seconds = self.behaviour.seconds if self.seconds is None else self.seconds
        return Treatment(self.behaviour, seconds, self.error)


@dataclass(frozen=True, slots=True)
class Chaos:
    """Behaviours at random: the same seed treats the n-th sending of a text the same way.

    ``rate`` is the share of requests that are not simply answered, ``seconds`` the longest wait.
    """

    seed: int
    rate: float = 0.3
    seconds: float = 5.0
    without: frozenset[Behaviour] = frozenset({Behaviour.REFUSE_TOKEN})
    """A refused token needs a person, so a long run does without it unless asked."""
    only: frozenset[Behaviour] = frozenset(Behaviour)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``SEED`` or ``SEED:RATE``; raises ``ValueError``."""
        seed, _, rate = text.partition(":")
        share = float(rate) if rate else 0.3
        if not 0 <= share <= 1:
            reason = "The rate lies between 0 and 1."
            raise ValueError(reason)
        return cls(int(seed), share)

    def treat(
        self, target: Target, nth: int, *, possible: Callable[[Behaviour], bool]
    ) -> Treatment:
        """Choose for the ``nth`` request like ``target``."""
        text = hashlib.sha256(target.message.encode()).hexdigest()
        name = f"{self.seed}:{target.page}:{target.endpoint}:{target.publishes}:{text}:{nth}"
        chance = random.Random(name)  # noqa: S311  a plan must be repeatable, not secret
        if chance.random() >= self.rate:
            return Treatment()
        choice = [
            behaviour
            for behaviour in Behaviour
            if behaviour in self.only
            and behaviour not in self.without
            and behaviour is not Behaviour.ANSWER
            and possible(behaviour)
        ]
        if not choice:
            return Treatment()
        behaviour = chance.choice(choice)
        return Treatment(behaviour, min(behaviour.seconds, chance.uniform(0.2, self.seconds)))


class Plan:
    """The rules now in force; safe to use from many threads."""

    def __init__(self, *, triggers: bool = True, chaos: Chaos | None = None) -> None:
        self.triggers = triggers
        self.chaos = chaos
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._nth: Counter[object] = Counter()

    def add(self, rules: Iterable[Rule]) -> None:
        """Put rules behind those there are; the first that fits and has its turn decides."""
        with self._lock:
            self._rules.extend(rules)

    def clear(self) -> None:
        """Drop every rule, and chance with them."""
        with self._lock:
            self._rules.clear()
            self.chaos = None

    def to_json(self) -> list[dict[str, Any]]:
        """Show the rules in force."""
        with self._lock:
            return [rule.to_json() for rule in self._rules]

    def cuts_unread(self, target: Target) -> bool:
        """Say whether a request is to be cut before its body is read; counts as its use.

        ``target.message`` is not known yet, so only rules without ``match`` are asked.
        """
        with self._lock:
            for rule in self._rules:
                if _needs_no_body(rule) and rule.fits(target) and rule.take():
                    return True
        return False

    def treat(self, target: Target, *, possible: Callable[[Behaviour], bool]) -> Treatment:
        """Choose what is done to a request.

        ``possible`` says whether a behaviour can be done now, such as giving an older id where
        there is an older post; rules that cannot be done are passed over, unused.
        """

        def can(behaviour: Behaviour) -> bool:
            suited = suits(behaviour, target.endpoint, publishes=target.publishes)
            return suited and possible(behaviour)

        with self._lock:
            for rule in self._rules:
                if _needs_no_body(rule) or not rule.fits(target) or not can(rule.behaviour):
                    continue
                if taken := rule.take():
                    return taken
            if self.triggers and (triggered := self._triggered(target, can)):
                return triggered
            if self.chaos is None:
                return Treatment()
            key = target
            self._nth[key] += 1
            return self.chaos.treat(target, self._nth[key], possible=can)

    def _triggered(self, target: Target, can: Callable[[Behaviour], bool]) -> Treatment | None:
        """Read ``#sandbox:name``, ``#sandbox:name=seconds`` or ``#sandbox:name*times``."""
        for name, seconds, times in _TRIGGER.findall(target.message):
            behaviour = _NAMED.get(name)
            if behaviour is None or not target.publishes or not can(behaviour):
                continue
            if times:
                self._nth[(target, name)] += 1
                if self._nth[(target, name)] > int(times):
                    continue
            return Treatment(behaviour, float(seconds) if seconds else behaviour.seconds)
        return None


def _needs_no_body(rule: Rule) -> bool:
    """Say whether a rule is decided by ``cuts_unread``, once the head of a request is read."""
    unread = rule.behaviour is Behaviour.RESET_UNREAD
    return unread and rule.match is None and rule.endpoint is not Endpoint.PUBLISH
