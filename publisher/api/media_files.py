"""``/media/{workspace}/{sha256}``: what a signed address names, sent to whoever holds it.

For platforms that fetch a picture instead of being sent it. It takes no token, for the address is
one; it is no part of the description, for nobody makes it up.
"""

from __future__ import annotations

import re
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from publisher.api.calls import Desk
from publisher.db import walls
from publisher.editorial.media import serving, signing
from publisher.engine import queries
from publisher.engine.errors import NotFound
from publisher.words import _

router = APIRouter(tags=["media"], include_in_schema=False)
_PATH: Final = re.compile(rf"{serving.PREFIX}/([1-9][0-9]{{0,8}})/([0-9a-f]{{64}})")
_SUFFIXES: Final = {"image/jpeg": "jpg", "video/quicktime": "mov"}


@router.api_route(f"{serving.PREFIX}/{{workspace}}/{{sha256}}", methods=["GET", "HEAD"])
def send_media(request: Request, expires: str = "", signature: str = "") -> Response:
    """Check the signature before anything is looked for, then send the file as its own type."""
    desk: Desk = request.app.state.desk
    path = request.scope["path"]
    with walls.within(desk.engine, None).begin() as conn:
        now = queries.clock(conn)
    signing.verify(
        desk.vault.key_for(signing.PURPOSE),
        method=request.method,
        path=path,
        expires=expires,
        signature=signature,
        now=now,
    )
    found = _PATH.fullmatch(path)
    if found is None:  # pragma: no cover - none other is signed
        raise NotFound(_("There is nothing at this address."))
    engine = walls.within(desk.engine, int(found[1]))
    library = desk.parts.library.within(engine)
    with engine.begin() as conn:
        kept = library.find(conn, found[2])
    suffix = _SUFFIXES.get(kept.type, kept.type.rpartition("/")[2])
    headers = {
        "Content-Length": str(kept.size),
        "Content-Type": kept.type,
        "Content-Disposition": f'inline; filename="{kept.sha256[:16]}.{suffix}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Accept-Ranges": "none",
    }
    if request.method == "HEAD":
        return Response(headers=headers)
    return StreamingResponse(serving.opened(library, kept), headers=headers)
