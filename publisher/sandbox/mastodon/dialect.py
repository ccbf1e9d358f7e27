"""Mastodon as one of the sandbox's dialects."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.dialect import Asked, Complaint
from publisher.sandbox.mastodon import calls, keys, media, refusals, shown, statuses, timeline
from publisher.sandbox.mastodon.settings import Keys, SettingsByPage
from publisher.sandbox.pages import Page, token_hash
from publisher.sandbox.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from publisher.sandbox.mastodon.calls import Call
    from publisher.sandbox.mastodon.settings import Settings
    from publisher.sandbox.pages import Pages, Post
    from publisher.sandbox.plan import Treatment
    from publisher.sandbox.platform import Platform
    from publisher.sandbox.wire import Head

_FIRST_ACCOUNT = 110_000_000_000_000_000
_USER = re.compile(r"^\w{1,30}$")
_COMPLAINTS: dict[Complaint, Callable[[], refusals.MastodonRefusal]] = {
    Complaint.LIMITED: refusals.limited,
    Complaint.INVALID: lambda: refusals.invalid("Text can't be blank"),
    Complaint.TOKEN: refusals.bad_token,
    Complaint.DUPLICATE: lambda: refusals.invalid("Text can't be blank"),
}


class Mastodon:
    """A server with several accounts, of whatever kind each is told to be."""

    name = "mastodon"
    noun = "Mastodon accounts"
    refuses_duplicates = False

    def __init__(self) -> None:
        self.settings = SettingsByPage()
        self._cache = keys.AnswerCache()

    def route(self, head: Head, state: Pages) -> Asked | None:
        """See ``Dialect``: ``/api/v1/{…}``, ``/api/v2/{…}``."""
        return calls.route(head, state)

    def read(self, request: str, asked: Asked, head: Head, body: bytes, _state: Pages) -> Call:
        """See ``Dialect``."""
        return calls.read(request, asked, head, body)

    def perform(self, call: Call, done: Treatment, platform: Platform) -> Answer:
        """See ``Dialect``."""
        key = call.asked.client_mutation_id
        settings = self.settings.of(call.asked.page)
        if key is None or settings.keys is not Keys.CACHED:
            return self._perform(call, settings, done, platform)
        if cached := self._cache.find(key, settings):
            fact = {"fact": "repeated", "request": call.request}
            platform.record({**fact, "post": json.loads(cached.body).get("id")})
            return cached
        try:
            answer = self._perform(call, settings, done, platform)
        except refusals.MastodonRefusal as refusal:
            self._cache.keep(key, refusal.answer(call.request))
            raise
        self._cache.keep(key, answer)
        return answer

    def complain(self, complaint: Complaint, call: Call, done: Treatment) -> Answer:
        """See ``Dialect``."""
        if complaint is Complaint.BROKEN:
            return refusals.broken(call.accept, done.error)
        answer = _COMPLAINTS[complaint]().answer("", done.error)
        if complaint is Complaint.LIMITED:
            told = done.behaviour is not Behaviour.REFUSE_429
            limit = refusals.limit_headers(0, done.seconds) if told else {}
            answer.headers.update(limit)
        if done.behaviour is Behaviour.REFUSE_429_RETRY_AFTER:
            answer.headers["Retry-After"] = str(round(done.seconds))
        return answer

    def unreadable(self, _request: str, reason: str) -> Answer:
        """See ``Dialect``."""
        return refusals.MastodonRefusal(reason, 400).answer("")

    def without_id(self) -> Answer:
        """See ``Dialect``."""
        return Answer.of_json({})

    def older(self, _call: Call, post: Post, platform: Platform) -> Answer:
        """See ``Dialect``."""
        with platform.lock:
            return self._show(post, platform)

    def finish(self, answer: Answer, _call: Call, platform: Platform) -> None:
        """See ``Dialect``: how much of the rate limit is left, on every answer but a bare 429."""
        if answer.status == 429:  # noqa: PLR2004  it has said what it would
            return
        used = platform.usage_percent or 0
        remaining = refusals.RATE_LIMIT * (100 - used) // 100
        answer.headers.update(refusals.limit_headers(remaining, refusals.RATE_WINDOW))

    def default_account(self, number: int) -> tuple[Page, str]:
        """See ``Dialect``: @sandbox1, with the token sandbox-token-mastodon-1."""
        return self.account({}, number)

    def account(self, given: Mapping[str, Any], number: int) -> tuple[Page, str]:
        """See ``Dialect``: ``id`` (digits), ``username``, ``token``, ``name``, ``application``."""
        page = str(given.get("id") or _FIRST_ACCOUNT + number)
        user = str(given.get("username") or f"sandbox{number}")
        if not page.isdigit() or not _USER.match(user):
            reason = "A Mastodon account has an id of digits, and letters and digits as username."
            raise ValueError(reason)
        token = str(given.get("token") or f"sandbox-token-mastodon-{number}")
        name = str(given.get("name") or f"@{user}")
        made = Page(page, name, token_hash(token), platform=self.name, details={"username": user})
        return made, token

    def configure(self, page: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
        """See ``Dialect``: the members of ``Settings``."""
        return self.settings.change(page, given).to_json()

    def identify(self, post: Post, state: Pages) -> Post:
        """See ``Dialect``."""
        return statuses.identify(post, state)

    def land(self, post: Post, state: Pages) -> Post | None:
        """See ``Dialect``: a key that has been used in the meantime is honoured, if any is."""
        settings = self.settings.of(post.page)
        if keys.known(post.page, post.client_mutation_id, settings, state):
            return None
        return statuses.identify(post, state)

    def locate(self, path: str, state: Pages) -> Page | Post | None:
        """See ``Dialect``: ``/@{username}``, ``/@{username}/{id}``."""
        if not path.startswith("/@"):
            return None
        user, _, id_ = path.removeprefix("/@").partition("/")
        page = next((it for it in state.of(self.name) if it.details["username"] == user), None)
        if page is None or not id_:
            return page
        post = state.posts.get(id_)
        return post if post is not None and post.page == page.id else None

    def address(self, post: Post, state: Pages) -> str:
        """See ``Dialect``."""
        return f"/@{state.pages[post.page].details['username']}/{post.id}"

    def _perform(
        self, call: Call, settings: Settings, done: Treatment, platform: Platform
    ) -> Answer:
        match call.what:
            case "POST statuses":
                return self._publish(call, settings, done, platform)
            case "POST media":
                with platform.lock:
                    page = calls.caller(call, platform.state)
                shown_media, status = media.upload(call, page, settings, platform)
                return Answer.of_json(shown_media, status)
            case _:
                with platform.lock:
                    return self._do(call, settings, done, platform)

    def _do(  # noqa: PLR0911  one for each method
        self, call: Call, settings: Settings, done: Treatment, platform: Platform
    ) -> Answer:
        state, base = platform.state, platform.base
        match call.what:
            case "GET statuses/:id" | "GET statuses/:id/source":
                return Answer.of_json(statuses.read(call, settings, done, platform))
            case "DELETE statuses/:id":
                page = calls.caller(call, state)
                return Answer.of_json(statuses.delete(call, page, settings, platform))
            case "GET media/:id" | "PUT media/:id":
                page = calls.caller(call, state)
                shown_media, status = media.read_or_describe(call, page, platform)
                return Answer.of_json(shown_media, status)
            case "GET accounts/:id/statuses":
                data, headers = timeline.listing(call, settings, done, platform)
                return Answer.of_json(data, 200, **headers)
            case "GET accounts/verify_credentials":
                page = calls.caller(call, state)
                posts = len(state.walls[page.id])
                return Answer.of_json(shown.own_account(page, base, posts))
            case "GET apps/verify_credentials":
                return Answer.of_json(shown.application(calls.caller(call, state)))
            case "GET accounts/:id" if (found := state.pages.get(call.id)) in state.of(self.name):
                assert found is not None  # noqa: S101  it is one of them
                return Answer.of_json(shown.account(found, base, len(state.walls[found.id])))
            case "GET instance":
                is_old = call.asked.path.startswith("/api/v1/")
                show = shown.instance_of_old if is_old else shown.instance
                return Answer.of_json(show(settings, base))
            case _:
                raise refusals.no_such_path()

    def _publish(
        self, call: Call, settings: Settings, done: Treatment, platform: Platform
    ) -> Answer:
        state, key = platform.state, call.asked.client_mutation_id
        with platform.lock:
            page = calls.caller(call, state)
            if first := keys.known(page.id, key, settings, state):
                return self._repeat(call, first, settings, platform)
            if key is None or settings.keys is not Keys.UNLOCKED:
                return self._create(call, page, settings, done, platform)
        # The key has been looked up and is not there; whoever comes now does not find it either.
        platform.stopping.wait(settings.race_for)
        with platform.lock:
            return self._create(call, page, settings, done, platform)

    def _create(
        self, call: Call, page: Page, settings: Settings, done: Treatment, platform: Platform
    ) -> Answer:
        post = statuses.make(call, page, settings, platform.state)
        platform.publish(post, done)
        return self._show(post, platform)

    def _repeat(self, call: Call, first: str, settings: Settings, platform: Platform) -> Answer:
        post = platform.state.posts.get(first)
        platform.record({"fact": "repeated", "request": call.request, "post": first})
        if settings.keys is Keys.REPLAY_500:
            return refusals.broken(call.accept, {})
        if post is None:
            raise refusals.not_found()  # as ``Status.find`` does for one that was deleted
        return self._show(post, platform)

    def _show(self, post: Post, platform: Platform) -> Answer:
        settings = self.settings.of(post.page)
        return Answer.of_json(statuses.show(post, settings, platform, own=True))
