"""Control calls under ``/_control/``: what tests and rehearsals use to work the sandbox."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from publisher.sandbox import log
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.pages import (
    APPLICATION,
    APPLICATION_NAME,
    Page,
    Post,
    to_fact,
    token_hash,
)
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
        made = platform.add_default_pages(int(given["count"]))
    else:
        made = [_page(item) for item in (given if isinstance(given, list) else [given])]
        platform.add_pages(page for page, _ in made)
    return [{"id": page.id, "name": page.name, "token": token} for page, token in made]


def _page(given: dict[str, Any]) -> tuple[Page, str]:
    page = str(given["id"])
    if not page.isdigit():
        reason = "The id of a page is digits."
        raise ValueError(reason)
    token = str(given.get("token") or f"sandbox-token-{page}")
    application = str(given.get("application") or APPLICATION)
    name = str(given.get("application_name") or APPLICATION_NAME)
    return Page(page, str(given.get("name") or page), token_hash(token), application, name), token


def _show_pages(platform: Platform, _given: Any) -> Any:  # noqa: ANN401
    with platform.lock:
        pages = list(platform.state.pages.values())
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
    """Revoke a page's token with a subcode (463 expired), or make it good again (null)."""
    with platform.lock:
        page = platform.state.pages[str(given["page"])]
    subcode = given.get("subcode", 463)
    platform.add_pages([replace(page, revoked_subcode=None if subcode is None else int(subcode))])
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
    ("GET", "posts"): _show_posts,
    ("POST", "posts"): _post_foreign,
    ("DELETE", "posts"): _take_down,
    ("GET", "log"): _summarise,
    ("POST", "revoke"): _revoke,
    ("POST", "delay"): _set_delay,
    ("POST", "usage"): _set_usage,
    ("POST", "listener"): _order_listener,
}
