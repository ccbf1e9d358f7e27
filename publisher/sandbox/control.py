"""A client for a sandbox's control calls, with the standard library only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from publisher.sandbox.behaviours import Behaviour

_OPENER = build_opener(ProxyHandler({}))
"""Without the proxies of the environment: the sandbox is on this machine."""


class ControlRefused(Exception):
    """The sandbox did not take a control call; the text says why."""


class SandboxControl:
    """Works the levers of the sandbox at ``url``. Every method raises ``ControlRefused``."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def behave(  # noqa: PLR0913  one for each key of a rule
        self,
        behaviour: Behaviour | str,
        *,
        page: str | None = None,
        endpoint: str = "any",
        times: int | None = 1,
        after: int = 0,
        seconds: float | None = None,
        match: str | None = None,
        error: Mapping[str, Any] | None = None,
    ) -> None:
        """Add one rule: the next ``times`` requests that fit, after ``after``, are treated so.

        ``endpoint``: feed, photos, videos, list, read, delete, publish (whatever publishes), any.
        ``times`` None: for ever. ``match``: part of the text. ``error``: parts of the error to
        replace, ``code``, ``error_subcode``, ``message``, ``status``.
        """
        self.plan([{
            "behaviour": str(behaviour), "page": page, "endpoint": endpoint, "times": times,
            "after": after, "seconds": seconds, "match": match, "error": dict(error or {}),
        }])  # fmt: skip

    def plan(self, rules: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Add rules, in the form of ``POST /_control/plan``; return all in force."""
        shown: list[dict[str, Any]] = self._call("POST", "plan", [dict(rule) for rule in rules])
        return shown

    def rules(self) -> list[dict[str, Any]]:
        """Return the rules in force, with how often each was ``seen`` and ``used``."""
        shown: list[dict[str, Any]] = self._call("GET", "plan")
        return shown

    def heal(self) -> None:
        """Drop every rule and chance: from now on everything is accepted and answered."""
        self._call("DELETE", "plan")

    def chaos(
        self,
        seed: int,
        rate: float = 0.3,
        *,
        seconds: float = 5.0,
        only: Iterable[Behaviour | str] | None = None,
        without: Iterable[Behaviour | str] | None = None,
    ) -> None:
        """Treat a share of all requests at random, repeatably by ``seed``."""
        given: dict[str, Any] = {"seed": seed, "rate": rate, "seconds": seconds}
        if only is not None:
            given["only"] = [str(behaviour) for behaviour in only]
        if without is not None:
            given["without"] = [str(behaviour) for behaviour in without]
        self._call("POST", "chaos", given)

    def add_pages(self, pages: int | Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
        """Add pages ``{"id", "name", "token", "application"}``, or 101 up to 100 + a number.

        Returns id, name and token of each.
        """
        given: Any = {"count": pages} if isinstance(pages, int) else [dict(page) for page in pages]
        made: list[dict[str, str]] = self._call("POST", "pages", given)
        return made

    def pages(self) -> list[dict[str, Any]]:
        """Return the pages there are."""
        shown: list[dict[str, Any]] = self._call("GET", "pages")
        return shown

    def foreign_post(
        self,
        page: str,
        message: str,
        *,
        created_at: datetime | None = None,
        **more: Any,  # noqa: ANN401
    ) -> str:
        """Put someone else's post on a page and return its id.

        ``more``: ``application`` (an id, or None for a person), ``application_name``, ``link``.
        """
        given: dict[str, Any] = {"page": page, "message": message, **more}
        if created_at is not None:
            given["created_at"] = created_at.timestamp()
        made: dict[str, Any] = self._call("POST", "posts", given)
        return str(made["id"])

    def posts(self, page: str | None = None) -> list[dict[str, Any]]:
        """Return the posts on a page (or on all), newest first, as the sandbox keeps them."""
        query = "" if page is None else "?" + urlencode({"page": page})
        shown: list[dict[str, Any]] = self._call("GET", f"posts{query}")
        return shown

    def take_down(self, post: str) -> None:
        """Take a post off its page, as its owner might by hand."""
        self._call("DELETE", "posts", {"post": post})

    def log(self) -> dict[str, Any]:
        """Return counts of the log, and the duplicates in it."""
        shown: dict[str, Any] = self._call("GET", "log")
        return shown

    def revoke(self, page: str, subcode: int = 463) -> None:
        """Make a page's token bad: 463 expired, 460 password changed, 458 app removed."""
        self._call("POST", "revoke", {"page": page, "subcode": subcode})

    def restore(self, page: str) -> None:
        """Make a page's token good again."""
        self._call("POST", "revoke", {"page": page, "subcode": None})

    def delay(self, ms: float) -> None:
        """Let every answer under Graph wait so many milliseconds."""
        self._call("POST", "delay", {"ms": ms})

    def usage(self, percent: int | None) -> None:
        """Put usage headers on every answer, or none."""
        self._call("POST", "usage", {"percent": percent})

    def refuse_connections(self, seconds: float) -> None:
        """Close the port for so long: connections are refused."""
        self._call("POST", "listener", {"mode": "refuse", "seconds": seconds})

    def hold_connections(self, seconds: float) -> None:
        """Accept nothing for so long: connections open, and nobody reads."""
        self._call("POST", "listener", {"mode": "hold", "seconds": seconds})

    def _call(self, method: str, path: str, given: Any = None) -> Any:  # noqa: ANN401
        data = None if given is None else json.dumps(given, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "Connection": "close"}
        address = f"{self.url}/_control/{path}"
        request = Request(address, data, headers, method=method)  # noqa: S310  always http
        try:
            with _OPENER.open(request, timeout=30) as response:
                return json.load(response)
        except HTTPError as error:
            with error:
                raise ControlRefused(json.load(error).get("error", str(error))) from None
