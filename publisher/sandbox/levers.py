"""Control calls under ``/_control/``: what tests and rehearsals use to work the sandbox."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from publisher.sandbox import log
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.pages import Page, Post, to_fact
from publisher.sandbox.plan import Chaos, Rule
from publisher.sandbox.platform import FOREIGN_APPLICATION, FOREIGN_NAME
from publisher.sandbox.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from publisher.sandbox.platform import Platform
    from publisher.sandbox.wire import Head


def answer(head: Head, body: bytes, platform: Platform) -> Answer:
    """Answer a control call. The sandbox listens on loopback only, so the caller is local.

    A call that changes something must be JSON: a page in a browser cannot send that elsewhere
    without being asked first.
    """
    lever = _LEVERS.get((head.method, head.path.removeprefix("/_control/")))
    if lever is None:
        return Answer.of_json({"error": f"No control {head.method} {head.path}."}, 404)
    is_json = head.headers.get("content-type", "").startswith("application/json")
    if head.method != "GET" and not is_json:
        return Answer.of_json({"error": "A control call must be application/json."}, 415)
    try:
        given = json.loads(body) if body else {}
        if head.method == "GET":
            given = {name: values[-1] for name, values in parse_qs(head.query).items()}
        return Answer.of_json(lever(platform, given))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"missing or unknown: {error}" if isinstance(error, KeyError) else str(error)
        return Answer.of_json({"error": reason}, 400)


def _add_rules(platform: Platform, given: Any) -> Any:  # noqa: ANN401  JSON in, JSON out
    rules = given if isinstance(given, list) else [given]
    platform.plan.add([Rule.from_json(rule) for rule in rules])
    return platform.plan.to_json()


def _show_rules(platform: Platform, _given: Any) -> Any:  # noqa: ANN401
    return platform.plan.to_json()


def _clear_rules(platform: Platform, _given: Any) -> Any:  # noqa: ANN401
    platform.plan.clear()
    return []


def _set_chaos(platform: Platform, given: Any) -> Any:  # noqa: ANN401
    chaos = Chaos(
        int(given["seed"]), float(given.get("rate", 0.3)), float(given.get("seconds", 5.0))
    )
    if "only" in given:
        chaos = replace(
            chaos, only=frozenset(map(Behaviour.named, given["only"])), without=frozenset()
        )
    if "without" in given:
        chaos = replace(chaos, without=frozenset(map(Behaviour.named, given["without"])))
    platform.plan.chaos = chaos
    return {"seed": chaos.seed, "rate": chaos.rate, "seconds": chaos.seconds}


def _add_pages(platform: Platform, given: Any) -> Any:  # noqa: ANN401
    """Add a list of pages, or so many made-up ones (``{"count": n}``); return their tokens."""
    if isinstance(given, dict) and "count" in given:
        made = platform.add_default_pages("graph", int(given["count"]))
    else:
        graph = platform.dialects["graph"]
        items = given if isinstance(given, list) else [given]
        made = [graph.account({**item, "id": item["id"]}, 0) for item in items]
        platform.add_pages(page for page, _ in made)
    return [{"id": page.id, "name": page.name, "token": token} for page, token in made]


def _add_account(platform: Platform, given: Any) -> Any:  # noqa: ANN401
    """Add one account of a platform, or so many made-up ones; return them with their tokens.

    An account that is there already is changed.
    """
    about = dict(given)
    name = _platform(platform, about.pop("platform"))
    if "count" in about:
        return [_account(*it) for it in platform.add_default_pages(name, int(about["count"]))]
    with platform.lock:
        number = len(platform.state.of(name)) + 1
        page, token = platform.dialects[name].account(about, number)
        platform.add_pages([page])
    return [_account(page, token)]


def _account(page: Page, token: str) -> dict[str, Any]:
    return {
        "platform": page.platform, "id": page.id, "name": page.name, "token": token, **page.details,
    }  # fmt: skip


def _platform(platform: Platform, name: str) -> str:
    if name not in platform.dialects:
        reason = f"There is no platform {name!r}. There are: {', '.join(platform.dialects)}."
        raise ValueError(reason)
    return name


def _show_accounts(platform: Platform, given: Any) -> Any:  # noqa: ANN401
    """Show the accounts there are; a token only where it is a made-up one."""
    wanted = given.get("platform")
    names = list(platform.dialects) if wanted is None else [_platform(platform, wanted)]
    return [
        {
            "platform": page.platform, "id": page.id, "name": page.name, **page.details,
            "revoked_subcode": page.revoked_subcode, "token": _default_token(platform, page),
        }
        for name in names
        for page in platform.state.of(name)
    ]  # fmt: skip


def _default_token(platform: Platform, page: Page) -> str | None:
    dialect = platform.dialects[page.platform]
    for number in range(1, len(platform.state.of(page.platform)) + 1):
        made, token = dialect.default_account(number)
        if made.id == page.id and made.token_sha256 == page.token_sha256:
            return token
    return None


def _configure(platform: Platform, given: Any) -> Any:  # noqa: ANN401
    """Change how a platform treats one account (``page``) or all; show what holds then."""
    about = dict(given)
    dialect = platform.dialects[_platform(platform, about.pop("platform"))]
    page = about.pop("page", None)
    with platform.lock:
        if page is not None and platform.state.pages[str(page)].platform != dialect.name:
            reason = f"{page} is no account of {dialect.name}."
            raise ValueError(reason)
        return dialect.configure(None if page is None else str(page), about)


def _show_pages(platform: Platform, _given: Any) -> Any:  # noqa: ANN401
    with platform.lock:
        pages = platform.state.of("graph")
    return [
        {"id": page.id, "name": page.name, "revoked_subcode": page.revoked_subcode}
        for page in pages
    ]


def _post_foreign(platform: Platform, given: Any) -> Any:  # noqa: ANN401
    application = given.get("application", FOREIGN_APPLICATION)
    post = platform.foreign_post(
        str(given["page"]), str(given.get("message", "")), created_at=given.get("created_at"),
        application=application, application_name=given.get("application_name", FOREIGN_NAME),
        link=given.get("link"),
    )  # fmt: skip
    return to_fact(post)


def _show_posts(platform: Platform, given: Any) -> Any:  # noqa: ANN401
    with platform.lock:
        posts: list[Post] = [
            post
            for page in list(platform.state.pages)
            if given.get("page", page) == page
            for post in platform.state.wall(page)
        ]
    return [to_fact(post) for post in posts]


def _take_down(platform: Platform, given: Any) -> Any:  # noqa: ANN401
    platform.take_down(str(given["post"]), "control")
    return {}


def _summarise(platform: Platform, _given: Any) -> Any:  # noqa: ANN401
    read = log.read(platform.directory)
    return {
        "facts": read.facts,
        "requests": len(read.requests),
        "posts": len(read.posts),
        "ever_posted": len(read.ever_posted),
        "still_to_appear": len(read.promised),
        "duplicates": [
            {"page": page, "message": message, "copies": copies}
            for (page, message), copies in read.duplicates().items()
        ],
    }


def _revoke(platform: Platform, given: Any) -> Any:  # noqa: ANN401
    """Revoke a page's token with a subcode (463 expired), or make it good again (null).

    A bot's token is one for all its channels, so all of them lose it.
    """
    with platform.lock:
        held = platform.state.by_token[platform.state.pages[str(given["page"])].token_sha256]
        pages = list(held.values())
    given_subcode = given.get("subcode", 463)
    subcode = None if given_subcode is None else int(given_subcode)
    platform.add_pages(replace(page, revoked_subcode=subcode) for page in pages)
    return {}


def _set_delay(platform: Platform, given: Any) -> Any:  # noqa: ANN401
    platform.delay = float(given["ms"]) / 1000
    return {}


def _set_usage(platform: Platform, given: Any) -> Any:  # noqa: ANN401
    percent = given["percent"]
    platform.usage_percent = None if percent is None else int(percent)
    return {}


def _order_listener(platform: Platform, given: Any) -> Any:  # noqa: ANN401
    mode = given["mode"]
    if mode not in ("hold", "refuse"):
        reason = "The mode is hold or refuse."
        raise ValueError(reason)
    platform.order_listener(mode, float(given["seconds"]))
    return {}


_LEVERS: dict[tuple[str, str], Callable[[Platform, Any], Any]] = {
    ("GET", "plan"): _show_rules,
    ("POST", "plan"): _add_rules,
    ("DELETE", "plan"): _clear_rules,
    ("POST", "chaos"): _set_chaos,
    ("GET", "pages"): _show_pages,
    ("POST", "pages"): _add_pages,
    ("GET", "accounts"): _show_accounts,
    ("POST", "accounts"): _add_account,
    ("POST", "configure"): _configure,
    ("GET", "posts"): _show_posts,
    ("POST", "posts"): _post_foreign,
    ("DELETE", "posts"): _take_down,
    ("GET", "log"): _summarise,
    ("POST", "revoke"): _revoke,
    ("POST", "delay"): _set_delay,
    ("POST", "usage"): _set_usage,
    ("POST", "listener"): _order_listener,
}
