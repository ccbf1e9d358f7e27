"""A call: who makes it, within which walls it works, and one effect for one Idempotency-Key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import Depends, Header, Request, Response
from fastapi.security import HTTPBearer
from pydantic import BaseModel

from publisher.api import doors
from publisher.api.problems import Refusal
from publisher.config import Settings
from publisher.db import walls
from publisher.editorial import idempotency
from publisher.editorial.idempotency import Kept, StillRunning, Use
from publisher.editorial.people import tokens
from publisher.editorial.people.person import Person
from publisher.editorial.people.roles import Permission
from publisher.engine.errors import PublisherError
from publisher.engine.registry import Registry
from publisher.vault import Vault

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from publisher.bootstrap import App

REPLAYED: Final = "Idempotent-Replayed"
_PURPOSE: Final = "idempotency"


@dataclass(frozen=True, slots=True)
class Desk:
    """What calls work with. ``engine`` is in no workspace: nothing set, nothing seen."""

    settings: Settings
    engine: Engine = field(repr=False)
    vault: Vault
    registry: Registry
    parts: App = field(repr=False)

    @classmethod
    def of(cls, parts: App) -> Desk:
        """Of what the composition root has put together."""
        engine = walls.within(parts.database.engine, None)
        return cls(parts.settings, engine, parts.vault, parts.registry, parts)

    @property
    def horizon(self) -> timedelta:
        """After it, what an ended process wrote has landed or never will."""
        return timedelta(seconds=self.settings.horizon)

    @property
    def useful_for(self) -> timedelta:
        """How long after its time a post is still sent, unless it says otherwise."""
        return timedelta(seconds=self.settings.useful_for_seconds)


@dataclass(frozen=True, slots=True)
class Caller:
    """A person by whose token a program acts, at the desk."""

    desk: Desk
    person: Person

    @property
    def who(self) -> str:
        """The name that the journal keeps."""
        return str(self.person)

    @property
    def engine(self) -> Engine:
        """The database within the walls of the caller's workspace."""
        return walls.within(self.desk.engine, self.person.workspace_id)

    def transaction(self, *, everywhere: bool = False) -> AbstractContextManager[Connection]:
        """One transaction within those walls, committed where the block ends well.

        ``everywhere``: outside them, for accounts alone: they are the deployment's, and whoever
        is in several workspaces has one.
        """
        if everywhere:
            return walls.within(self.desk.engine, walls.EVERY).begin()
        return self.engine.begin()


_TOKEN: Final = HTTPBearer(scheme_name="token", description="An API token.", auto_error=False)


def _caller(request: Request, _given: Annotated[object, Depends(_TOKEN)]) -> Caller:
    """Whom the token belongs to. It alone is looked up in every workspace: it says which."""
    desk: Desk = request.app.state.desk
    secret = request.scope[doors.SECRET]
    with walls.within(desk.engine, walls.EVERY).begin() as conn:
        person = tokens.find(conn, secret)
    if person is None:
        raise Refusal(doors.unauthenticated(given=True))
    return Caller(desk, person)


Here = Annotated[Caller, Depends(_caller)]


def permitted(permission: Permission) -> Any:  # noqa: ANN401 - what FastAPI's Depends gives
    """A dependency that lets in who may do that."""

    def require(caller: Here) -> None:
        caller.person.require(permission)

    return Depends(require)


_KEY_HELP: Final = (
    "A fresh random value for each new piece of work, and the same one when it is repeated:"
    " visible ASCII, at most 255 characters. Kept for ever, per workspace and person."
)
_PATTERN: Final = r"^[!-~]+$"
RequiredKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=_PATTERN,
        description=_KEY_HELP,
        examples=["5f0c1c1e-6d0a-4e1b-9d0e-3f5d0b7a9f10"],
    ),
]
OptionalKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=_PATTERN,
        description=f"Not needed here; honoured where it is sent. {_KEY_HELP}",
    ),
]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call came to."""

    body: BaseModel
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    shown_once: BaseModel | None = field(default=None, repr=False)
    """What is sent the first time in place of ``body``: with a secret, which nothing keeps."""

    def kept(self) -> Kept:
        """As it is stored, and sent to whoever repeats the request."""
        return Kept(self.status, self.headers, self.body.model_dump_json())

    def told(self) -> Kept:
        """As it is sent the first time."""
        told = self.body if self.shown_once is None else self.shown_once
        return Kept(self.status, self.headers, told.model_dump_json())


def answered(body: BaseModel, *, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to a call that only reads."""
    return _response(Answer(body, headers=headers or {}).kept())


def once(
    caller: Caller,
    request: Request,
    key: str | None,
    act: Callable[[Connection], Answer],
    *,
    everywhere: bool = False,
) -> Response:
    """Do ``act`` in one transaction, with its answer kept under ``key`` in that same one.

    So there is no effect whose key was lost in a crash, and no key without its effect. A refusal
    keeps nothing: it did nothing, and may be asked again. ``everywhere``: as ``transaction``.
    """
    use = None if key is None else _use(caller, request, key)
    with caller.transaction(everywhere=everywhere) as conn:
        if use is not None and (kept := idempotency.hold(conn, use)) is not None:
            return _response(kept, replayed=True)
        answer = act(conn)
        if use is not None:
            idempotency.keep(conn, use, answer.kept())
    return _response(answer.told())


class Recorder:
    """The same for work that speaks to a platform first, and so opens its own transaction."""

    def __init__(self, caller: Caller, request: Request, key: str) -> None:
        self._caller = caller
        self._use = _use(caller, request, key)
        self._answer: Kept | None = None

    def done(self, act: Callable[[], None]) -> Response:
        """Answer from memory, or do ``act``, which calls ``keep`` in its own transaction."""
        kept = self._ask()
        if kept is not None:
            return _response(kept, replayed=True)
        try:
            act()
        except PublisherError:
            # Whoever sent the same request at the same moment may have been quicker.
            kept = self._ask()
            if kept is None:
                raise
            return _response(kept, replayed=True)
        if self._answer is None:  # pragma: no cover - every act keeps its answer
            raise AssertionError
        return _response(self._answer)

    def keep(self, conn: Connection, answer: Answer) -> None:
        """Keep the answer in the transaction of what it tells of."""
        if (
            idempotency.hold(conn, self._use) is not None
        ):  # pragma: no cover - the verdict comes first
            raise StillRunning
        self._answer = answer.kept()
        idempotency.keep(conn, self._use, self._answer)

    def _ask(self) -> Kept | None:
        with self._caller.transaction() as conn:
            return idempotency.hold(conn, self._use)


def _use(caller: Caller, request: Request, key: str) -> Use:
    path = request.scope["path"]
    query = request.scope["query_string"].decode("latin-1")
    body: bytes = request.scope.get(doors.CANONICAL, b"")
    secret = caller.desk.vault.key_for(_PURPOSE)
    return Use(
        person=caller.person,
        key=key,
        request=idempotency.fingerprint(secret, request.method, f"{path}?{query}", body),
        operation=f"{request.method} {path}",
    )


def _response(kept: Kept, *, replayed: bool = False) -> Response:
    headers = dict(kept.headers)
    if replayed:
        headers[REPLAYED] = "true"
    return Response(
        kept.body, status_code=kept.status, media_type="application/json", headers=headers
    )
