"""The platforms as one: pages, log, plan, and the one lock under which facts come true."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.journal import Journal, facts, sync_folder
from publisher.sandbox.pages import Pages, Post, to_fact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from publisher.sandbox.dialect import Asked, Dialect
    from publisher.sandbox.journal import Fact
    from publisher.sandbox.pages import Page
    from publisher.sandbox.plan import Plan, Treatment

FOREIGN_APPLICATION = "900000000000009"
FOREIGN_NAME = "Someone else"


class Platform:
    """State, log and plan of one sandbox. Raises ``JournalInUse`` when the log has a writer.

    ``counts``: by the name of a dialect, how many made-up accounts there are at least.
    """

    def __init__(
        self,
        directory: Path,
        plan: Plan,
        dialects: Iterable[Dialect[Any]],
        *,
        counts: dict[str, int],
        fsync: bool = True,
        delay: float = 0,
    ) -> None:
        self.directory = directory
        self.plan = plan
        self.dialects = {dialect.name: dialect for dialect in dialects}
        self.delay = delay
        """Seconds before every answer of a platform."""
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
        for name, count in counts.items():
            self.add_default_pages(name, count)
        # A copy: what is due already is stored, and no longer promised, while this goes on.
        for request, (due, post) in list(self.state.promised.items()):
            self._store_later(post, request, due)

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
        """Add pages, or change those there are. One that is as it was makes no new fact.

        Raises ``ValueError`` for an id that an account of another platform has.
        """
        with self.lock:
            new: list[Fact] = []
            for page in pages:
                old = self.state.pages.get(page.id)
                if old is not None and old.platform != page.platform:
                    reason = f"{page.id} is an account of {old.platform}."
                    raise ValueError(reason)
                if old != page:
                    new.append({"fact": "page", "page": to_fact(page)})
            if new:
                self.record(*new)()

    def add_default_pages(self, platform: str, count: int) -> list[tuple[Page, str]]:
        """Have the first ``count`` made-up accounts of a platform; return them with their tokens.

        One that is there stays as it is: a token revoked before a restart is revoked after it.
        """
        dialect = self.dialects[platform]
        made = [dialect.default_account(number) for number in range(1, count + 1)]
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
            dialect = self.dialect_of(page)
            post = dialect.identify(Post(
                id="", page=page, endpoint="feed", message=message, link=link, media=(),
                created_at=time.time() if created_at is None else created_at,
                application=application, application_name=application_name if application else None,
                request=request, foreign=True,
            ), self.state)  # fmt: skip
            wait = self.record({"fact": "stored", "post": to_fact(post)})
        wait()
        return post

    def take_down(self, post: str, by: str) -> None:
        """Take a post off its page. Raises ``KeyError`` when it is not there."""
        with self.lock:
            wait = self.record({"fact": "deleted", "post": self.state.posts[post].id, "by": by})
        wait()

    def dialect_of(self, page: str) -> Dialect[Any]:
        """Return the dialect of a page's platform. Raises ``KeyError`` for an unknown page."""
        return self.dialects[self.state.pages[page].platform]

    def can(self, behaviour: Behaviour, asked: Asked, dialect: Dialect[Any]) -> bool:
        """Say whether a behaviour can be done to this request now."""
        if behaviour is Behaviour.OLDER_ID:
            return self.older_post(asked) is not None
        if behaviour is Behaviour.REFUSE_DUPLICATE:
            with self.lock:
                there = self.state.texts[(asked.page or "", asked.message)] > 0
            return there and dialect.refuses_duplicates
        if behaviour is Behaviour.REFUSE_DUPLICATE_FALSELY:
            return dialect.refuses_duplicates
        return True

    def older_post(self, asked: Asked) -> Post | None:
        """Return the newest post on the page that the same application made."""
        with self.lock:
            page = self.state.pages.get(asked.page or "")
            if page is None:
                return None
            wall = self.state.wall(page.id)
            return next((post for post in wall if post.application == page.application), None)

    def publish(self, post: Post, done: Treatment, *before: Fact) -> None:
        """Store a post that a request asked for, in the way ``done`` says; ``before`` come first.

        Call it under the lock when the post was made of what is true now.
        """
        new = list(before)
        if done.behaviour is Behaviour.UNREADABLE:
            post = replace(post, readable=False)
        if done.behaviour is Behaviour.ACCEPT_LATE and post.request is not None:
            due = time.time() + done.seconds
            new.append(
                {"fact": "promised", "request": post.request, "due": due, "post": to_fact(post)}
            )
            self._store_later(post, post.request, due)
        else:
            new.append({"fact": "stored", "post": to_fact(post)})
        if done.behaviour is Behaviour.REMOVE_AT_ONCE:
            new.append({"fact": "deleted", "post": post.id, "by": "platform"})
        self.record(*new)

    def add_twin(self, asked: Asked, request: str) -> None:
        """Let someone else post the text of a request."""
        page = asked.page or ""
        if page in self.state.pages:
            self.foreign_post(page, asked.message, request=request)

    def keep(self, media: str, content: bytes) -> None:
        """Put the bytes of an upload on the disk, before the fact that it is there."""
        with (self._media / media).open("wb") as file:
            file.write(content)
            if self._fsync:
                file.flush()
                os.fsync(file.fileno())
        if self._fsync:
            sync_folder(self._media)

    def content(self, media: str) -> bytes | None:
        """Return the bytes of an upload, None when there are none."""
        path = self._media / media
        return path.read_bytes() if media.isdigit() and path.exists() else None

    def _store_later(self, post: Post, request: str, due: float) -> None:
        wait = max(0.0, due - time.time())
        timer = threading.Timer(wait, self._store_now, (post, request))
        timer.daemon = True
        timer.start()

    def _store_now(self, post: Post, request: str) -> None:
        with self.lock:
            if self.stopping.is_set():
                return
            post = replace(post, created_at=time.time())
            landed = self.dialect_of(post.page).land(post, self.state)
            if landed is None:
                self.record({"fact": "repeated", "request": request, "post": post.id})
            else:
                self.record({"fact": "stored", "post": to_fact(landed)})
