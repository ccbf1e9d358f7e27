"""The platform as a whole: pages, log, plan, and the one lock under which facts come true."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from publisher.sandbox import calls, listing, publishing
from publisher.sandbox.behaviours import Behaviour, Endpoint
from publisher.sandbox.journal import Journal, facts, sync_folder
from publisher.sandbox.pages import Pages, Post, default_page, to_fact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from publisher.sandbox.calls import Call
    from publisher.sandbox.journal import Fact
    from publisher.sandbox.pages import Page
    from publisher.sandbox.plan import Plan, Treatment
    from publisher.sandbox.publishing import Acceptance, Upload

FOREIGN_APPLICATION = "900000000000009"
FOREIGN_NAME = "Someone else"


class Platform:
    """State, log and plan of one sandbox. Raises ``JournalInUse`` when the log has a writer."""

    def __init__(
        self, directory: Path, plan: Plan, *, pages: int = 2, fsync: bool = True, delay: float = 0
    ) -> None:
        self.directory = directory
        self.plan = plan
        self.delay = delay
        """Seconds before every answer under Graph."""
        self.usage_percent: int | None = None
        """Set: every answer says so much of the rate limit is used."""
        self.base = ""
        self.lock = threading.RLock()
        self.stopping = threading.Event()
        self.order_listener: Callable[[str, float], None] = lambda _mode, _seconds: None
        self.state = Pages()
        self._fsync = fsync
        self._media = directory / "media"
        self._journal = Journal(directory, fsync=fsync)
        self._media.mkdir(exist_ok=True)
        for fact in facts(directory):
            self.state.apply(fact)
        number = self.state.next_number()
        wait = self.record({"fact": "started", "number": number, "pid": os.getpid()})
        wait()
        self.add_default_pages(pages)
        for due, post in self.state.promised.values():
            self._store_later(post, due)

    def record(self, *new: Fact) -> Callable[[], object]:
        """Make facts true and queue them for the log; call the result to wait for the disk."""
        with self.lock:
            for fact in new:
                self.state.apply(fact)
            return self._journal.append(*new)

    def close(self) -> None:
        """Say in the log that it ended, and let go of it."""
        self.stopping.set()
        self.record({"fact": "stopped"})
        self._journal.close()

    def add_pages(self, pages: Iterable[Page]) -> None:
        """Add pages, or change those there are. One that is as it was makes no new fact."""
        with self.lock:
            new: list[Fact] = [
                {"fact": "page", "page": to_fact(page)}
                for page in pages
                if self.state.pages.get(page.id) != page
            ]
            if new:
                self.record(*new)()

    def add_default_pages(self, count: int) -> list[tuple[Page, str]]:
        """Have the pages 101 to 100 + ``count``; return them with their tokens.

        One that is there stays as it is: a token revoked before a restart is revoked after it.
        """
        made = [default_page(number) for number in range(1, count + 1)]
        with self.lock:
            self.add_pages(page for page, _ in made if page.id not in self.state.pages)
        return made

    def foreign_post(
        self, page: str, message: str, *, created_at: float | None = None,
        application: str | None = FOREIGN_APPLICATION, application_name: str | None = FOREIGN_NAME,
        link: str | None = None, request: str | None = None,
    ) -> Post:  # fmt: skip
        """Put someone else's post on a page. Raises ``KeyError`` for an unknown page."""
        with self.lock:
            post = Post(
                id=f"{self.state.pages[page].id}_{self.state.next_number()}", page=page,
                endpoint="feed", message=message, link=link, media=(),
                created_at=time.time() if created_at is None else created_at,
                application=application, application_name=application_name if application else None,
                request=request, foreign=True,
            )  # fmt: skip
            wait = self.record({"fact": "stored", "post": to_fact(post)})
        wait()
        return post

    def take_down(self, post: str, by: str) -> None:
        """Take a post off its page. Raises ``KeyError`` when it is not there."""
        with self.lock:
            wait = self.record({"fact": "deleted", "post": self.state.posts[post].id, "by": by})
        wait()

    def can(self, behaviour: Behaviour, call: Call) -> bool:
        """Say whether a behaviour can be done to this call now."""
        if behaviour is Behaviour.OLDER_ID:
            return self.older_id(call) is not None
        if behaviour is Behaviour.REFUSE_DUPLICATE:
            with self.lock:
                return self.state.texts[(call.route.page or "", call.message)] > 0
        return True

    def older_id(self, call: Call) -> str | None:
        """Return the id of the newest post on the page that the same application made."""
        with self.lock:
            page = self.state.pages.get(call.route.page or "")
            if page is None:
                return None
            return next(
                (
                    post.id
                    for post in self.state.wall(page.id)
                    if post.application == page.application
                ),
                None,
            )

    def perform(self, call: Call, done: Treatment) -> dict[str, Any]:
        """Do what a call asks, in the way ``done`` says, and return Graph's answer.

        Raises ``Refusal`` with nothing stored, ``UnreadableForm``. What was stored is queued for
        the log; the caller waits for its own later fact.
        """
        with self.lock:
            page = calls.caller(call, self.state)
            if call.method == "GET":
                return self._read(call, page, done)
            acceptance = self._accept(call, page)
            if acceptance.upload is None:
                self._record(acceptance, call, done)
                return acceptance.answer
        self._keep(acceptance.upload)
        self._record(acceptance, call, done)
        return acceptance.answer

    def add_twin(self, call: Call) -> None:
        """Let someone else post the text of a call."""
        page = call.route.page or ""
        if page in self.state.pages:
            self.foreign_post(page, call.message, request=call.request)

    def content(self, media: str) -> bytes | None:
        """Return the bytes of an upload, None when there are none."""
        path = self._media / media
        return path.read_bytes() if media.isdigit() and path.exists() else None

    def _read(self, call: Call, page: Page, done: Treatment) -> dict[str, Any]:
        if call.route.node == "debug_token":
            return listing.debug_token(call, self.state)
        if call.route.endpoint is Endpoint.LIST:
            return listing.list_posts(call, self.state, page, self.base, done)
        return listing.read_node(call, self.state, page, self.base, done)

    def _accept(self, call: Call, page: Page) -> Acceptance:
        if call.route.endpoint is Endpoint.DELETE:
            return publishing.delete(call, self.state, page)
        if call.route.endpoint is Endpoint.READ:
            return publishing.flip(call, self.state, page)
        return publishing.create(call, self.state, page, self.base)

    def _record(self, acceptance: Acceptance, call: Call, done: Treatment) -> None:
        new, post = list(acceptance.facts), acceptance.post
        if post is not None and done.behaviour is Behaviour.UNREADABLE:
            new[-1] = {"fact": "stored", "post": to_fact(replace(post, readable=False))}
        if post is not None and done.behaviour is Behaviour.REMOVE_AT_ONCE:
            new.append({"fact": "deleted", "post": post.id, "by": "platform"})
        if post is not None and done.behaviour is Behaviour.ACCEPT_LATE:
            due = time.time() + done.seconds
            new[-1] = {
                "fact": "promised", "request": call.request, "due": due, "post": to_fact(post),
            }  # fmt: skip
            self._store_later(post, due)
        if new:
            self.record(*new)

    def _store_later(self, post: Post, due: float) -> None:
        timer = threading.Timer(max(0.0, due - time.time()), self._store_now, (post,))
        timer.daemon = True
        timer.start()

    def _store_now(self, post: Post) -> None:
        if not self.stopping.is_set():
            self.record({"fact": "stored", "post": to_fact(replace(post, created_at=time.time()))})

    def _keep(self, upload: Upload) -> None:
        if upload.content is None:
            return
        with (self._media / upload.media.id).open("wb") as file:
            file.write(upload.content)
            if self._fsync:
                file.flush()
                os.fsync(file.fileno())
        if self._fsync:
            sync_folder(self._media)
