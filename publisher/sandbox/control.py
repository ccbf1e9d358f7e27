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

        ``page``: id of an account of any platform. ``endpoint``: feed, photos, videos (Graph);
        post, media, media-state, session, account (the others); list, read, delete, publish
        (whatever publishes), any. ``times`` None: for ever. ``match``: part of the text.
        ``error``: parts of the error to replace: ``status`` and members of the platform's body,
        such as ``code``, ``error_subcode``, ``message`` (Graph), ``error``, ``message`` (Bluesky),
        ``error`` (Mastodon), ``description``, ``parameters`` (Telegram).
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
        """Add Facebook Pages ``{"id", "name", "token", "application"}``, or 101 to 100 + a number.

        Returns id, name and token of each.
        """
        given: Any = {"count": pages} if isinstance(pages, int) else [dict(page) for page in pages]
        made: list[dict[str, str]] = self._call("POST", "pages", given)
        return made

    def pages(self) -> list[dict[str, Any]]:
        """Return the Facebook Pages there are."""
        shown: list[dict[str, Any]] = self._call("GET", "pages")
        return shown

    def add_account(self, platform: str, **details: Any) -> dict[str, Any]:  # noqa: ANN401
        """Add an account (or change the one of that id) and return it with its token.

        ``platform``: bluesky, mastodon, telegram, graph. What is not given is made up:

        - bluesky: ``id`` (a did), ``handle``, ``token`` (the app password), ``name``
        - mastodon: ``id``, ``username``, ``token``, ``name``
        - telegram: ``id`` (-100…), ``username`` (without @), ``token`` (the bot's, which may be
          that of other channels), ``name``, ``status`` (administrator, left, kicked),
          ``can_post_messages``, ``can_delete_messages``

        The answer holds ``platform``, ``id``, ``name``, ``token`` and the details. The ``id`` is
        the ``page`` of every other method here.
        """
        given = {"platform": platform, **details}
        made: list[dict[str, Any]] = self._call("POST", "accounts", given)
        return made[0]

    def add_accounts(self, platform: str, count: int) -> list[dict[str, Any]]:
        """Have at least ``count`` made-up accounts; return the first so many with their tokens."""
        given = {"platform": platform, "count": count}
        made: list[dict[str, Any]] = self._call("POST", "accounts", given)
        return made

    def accounts(self, platform: str | None = None) -> list[dict[str, Any]]:
        """Return the accounts there are, of one platform or all; tokens of made-up ones too."""
        query = "" if platform is None else "?" + urlencode({"platform": platform})
        shown: list[dict[str, Any]] = self._call("GET", f"accounts{query}")
        return shown

    def texts(self, page: str) -> list[str]:
        """Return the texts on an account as they were sent, newest first."""
        return [post["message"] for post in self.posts(page)]

    def bluesky(self, page: str | None = None, **settings: float) -> dict[str, Any]:
        """Set how sessions live, for one did or for all; return what holds then.

        ``access_for``, ``refresh_for``: seconds that tokens made from now on are good for;
        ``refresh_grace_for``: seconds that a used refresh token can be used again.
        """
        return self._configure("bluesky", page, settings)

    def expire_sessions(self, page: str) -> None:
        """Let every access token of a did expire now; refresh tokens stay good."""
        self._configure("bluesky", page, {"expire": True})

    def mastodon(self, page: str | None = None, **settings: Any) -> dict[str, Any]:  # noqa: ANN401
        """Set what kind of server it is, for one account or for all; return what holds then.

        ``server``: mastodon, pleroma, akkoma, gotosocial, hollo, takahe, pixelfed: sets
        ``version``, ``max_characters`` and ``keys`` as that server has them; each can be given by
        itself as well. ``keys``: what an ``Idempotency-Key`` does, see ``mastodon.settings``:
        honoured, ignored, unlocked, late, replay-500, cached. ``keys_for``: seconds a key is kept;
        ``late_by``: seconds until a key is known (late); ``race_for``: seconds between looking a
        key up and storing it (unlocked); ``processing_for``: seconds until an upload is processed;
        ``quirks``: names out of ``mastodon.settings.Quirk``. ``server="mastodon"`` sets all back.
        """
        return self._configure("mastodon", page, settings)

    def _configure(
        self, platform: str, page: str | None, settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        given = {"platform": platform, "page": page, **settings}
        shown: dict[str, Any] = self._call("POST", "configure", given)
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
        """Make a page's token bad; Graph: 463 expired, 460 password changed, 458 app removed.

        Bluesky: the app password and every session; Telegram: the bot, in all its channels.
        """
        self._call("POST", "revoke", {"page": page, "subcode": subcode})

    def restore(self, page: str) -> None:
        """Make a page's token good again."""
        self._call("POST", "revoke", {"page": page, "subcode": None})

    def delay(self, ms: float) -> None:
        """Let every answer of a platform wait so many milliseconds."""
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
