"""``/media``: pictures and videos, taken in as bytes or from an address.

They are kept by the SHA-256 of their bytes, so that a repeat makes nothing new and needs no key.
"""

from __future__ import annotations

import tempfile
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, cast

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from publisher.api.calls import Caller, Here, answered
from publisher.api.operations import operation
from publisher.api.problems import Problem, Refusal
from publisher.api.strict import Body, Instant, Told
from publisher.editorial import media
from publisher.editorial.media import MOST_BYTES, Kept, Library, serving, signing
from publisher.editorial.people.roles import Permission
from publisher.engine.errors import NotFound
from publisher.words import _

if TYPE_CHECKING:
    from sqlalchemy import Connection

router = APIRouter(tags=["media"])
_IN_MEMORY: Final = 1_000_000
_LONGEST: Final = int(signing.LONGEST.total_seconds())
Sha256 = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="Of its bytes.")]
_FILE: Final = {"schema": {"type": "string", "format": "binary", "maxLength": MOST_BYTES}}


class MediaTold(Told):
    """One picture or video that is kept."""

    sha256: str = Field(description="What a post names it by.")
    kind: str
    type: str
    size: int
    width: int | None
    height: int | None
    frames: int | None
    created_at: Instant
    created_by: str | None
    url: str


class Address(Body):
    """Where it lies."""

    url: Annotated[str, Field(min_length=1, max_length=2_000)] = Field(
        description="A public address. It is fetched once; what lies there later changes nothing.",
        examples=["https://pictures.example/a.jpg"],
    )


class Lasts(Body):
    """How long."""

    seconds: Annotated[int, Field(ge=1, le=_LONGEST, description="From now on.")] = 3_600


class MediaAddress(Told):
    """Where the file is sent from, to whoever asks there."""

    url: str = Field(
        description="A path where the deployment has no PUBLISHER_PUBLIC_URL to begin it with."
    )
    expires_at: Instant


@operation(router, "POST", "/media", Permission.MEDIA_WRITE, MediaTold, status=201, file=_FILE)
async def add_media(here: Here, request: Request) -> Response:
    """Take in a picture or video: the body is the file's bytes.

    What it is is seen by its bytes, whatever Content-Type says. A picture is made anew, without
    what it told of its place and camera.
    """
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > MOST_BYTES:
                detail = _("The file is larger than {n:,} bytes. Nothing was stored.")
                raise Refusal(Problem.of("body-too-large", detail.format(n=MOST_BYTES)))
            await run_in_threadpool(file.write, chunk)
        file.seek(0)
        kept = await run_in_threadpool(_add, here, cast("BinaryIO", file))
    return _told(kept, status=201)


@operation(
    router,
    "POST",
    "/media-from-url",
    Permission.MEDIA_WRITE,
    MediaTold,
    status=201,
    example={"url": "https://pictures.example/a.jpg"},
)
def fetch_media(here: Here, body: Address) -> Response:
    """Fetch a picture or video from an address, and keep it.

    No address inside a private network is gone to, and none that a name or a redirect leads to.
    """
    kept = media.add_from_url(_library(here), here.desk.parts.fetcher, body.url, who=here.who)
    return _told(kept, status=201)


@operation(router, "GET", "/media/{sha256}", Permission.POSTS_READ, MediaTold)
def show_media(sha256: Sha256, here: Here) -> Response:
    """Say what is kept under a hash."""
    with here.transaction() as conn:
        return _told(_find(conn, here, sha256))


@operation(
    router,
    "POST",
    "/media/{sha256}/address",
    Permission.POSTS_READ,
    MediaAddress,
    example={"seconds": 3600},
)
def make_media_address(sha256: Sha256, here: Here, body: Lasts) -> Response:
    """Make an address at which the file can be fetched for a while, by whoever holds it.

    For previews, and for platforms that fetch. It needs no token, and cannot be taken back.
    """
    with here.transaction() as conn:
        address = serving.address(
            conn,
            here.desk.vault.key_for(signing.PURPOSE),
            _find(conn, here, sha256),
            workspace_id=here.person.workspace_id,
            lasts=timedelta(seconds=body.seconds),
        )
    base = (here.desk.settings.public_url or "").rstrip("/")
    return answered(MediaAddress(url=f"{base}{address.path}", expires_at=address.expires_at))


def _find(conn: Connection, here: Caller, sha256: str) -> Kept:
    try:
        return here.desk.parts.library.find(conn, sha256)
    except NotFound:
        message = _("There is no picture or video {sha256} here.")
        raise NotFound(message.format(sha256=sha256)) from None


def _add(here: Caller, file: BinaryIO) -> Kept:
    return media.add(_library(here), media.chunks_of(file), who=here.who)


def _library(here: Caller) -> Library:
    return here.desk.parts.library.within(here.engine)


def _told(kept: Kept, *, status: int = 200) -> Response:
    url = f"/api/v1/media/{kept.sha256}"
    told = MediaTold(
        sha256=kept.sha256,
        kind=kept.kind,
        type=kept.type,
        size=kept.size,
        width=kept.width,
        height=kept.height,
        frames=kept.frames,
        created_at=kept.created_at,
        created_by=kept.created_by,
        url=url,
    )
    response = answered(told, headers={"Location": url} if status == 201 else None)  # noqa: PLR2004
    response.status_code = status
    return response
