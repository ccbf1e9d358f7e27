"""The harmless steps before a post: read the server, upload the files, note the newest post.

What each found is kept in progress. The newest post is noted last, so that as little as possible
lies between it and the send.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from publisher.adapters.mastodon.account import Account
from publisher.adapters.mastodon.formats import problems
from publisher.adapters.mastodon.refusals import step_failure
from publisher.adapters.mastodon.servers import Server
from publisher.adapters.mastodon.statuses import newest_id
from publisher.adapters.mastodon.uploads import Upload, keep, unready, uploads
from publisher.engine.adapter import MediaStore, More, Progress, Ready, Step, Wait
from publisher.engine.content import Media, Post
from publisher.engine.outcome import Deferred, Reason, Rejected, Unauthorized
from publisher.transport import Failed, FilePart, Reply, Transport

POLL_SECONDS = 5.0
"""Between two looks at a file that is being processed."""
UPLOAD_TRIES = 3

_NEWEST = "newest"
_APPLICATION = "application"
_OK = 200
_ACCEPTED = 202
_PARTIAL = 206
_NOT_FOUND = 404


def newest_before(progress: Progress) -> str | None:
    """The account's newest post before the send: ``""`` when it had none, None when unknown."""
    value = progress.get(_NEWEST)
    return value if isinstance(value, str) else None


def application(progress: Progress) -> str | None:
    """The name under which the server knows our application, where it gave one."""
    value = progress.get(_APPLICATION)
    return value if isinstance(value, str) and value else None


def is_complete(post: Post, progress: Progress) -> bool:
    """Whether every step is done."""
    return (
        Server.kept(progress) is not None
        and not unready(post, progress)
        and newest_before(progress) is not None
    )


def step(
    transport: Transport, account: Account, media: MediaStore, post: Post, progress: Progress
) -> Step:
    """Do the next one."""
    server = Server.kept(progress)
    if server is None:
        return _read_server(transport, account, progress)
    if found := problems(post.to_json(), server):
        return Rejected(Reason.CONTENT_REFUSED, " ".join(problem.message for problem in found))
    waiting = unready(post, progress)
    if waiting:
        upload = uploads(post, progress).get(waiting[0])
        if upload is None:
            return _upload(transport, account, media, post, progress, waiting[0])
        return _poll(transport, account, media, post, progress, waiting[0])
    if newest_before(progress) is None:
        return _note_newest(transport, account, progress)
    return Ready(progress)


def _read_server(transport: Transport, account: Account, progress: Progress) -> Step:
    """Ask what the server is, and what our application is called on it."""
    instance = read_instance(transport, account)
    if not isinstance(instance, Mapping):
        return _failure("The server could not be read", instance, account)
    kept = {**progress, _APPLICATION: application_of(transport, account) or ""}
    return More(Server.read(instance).keep(kept))


def application_of(transport: Transport, account: Account) -> str | None:
    """What the server calls the application that our token was given to; None where it is silent.

    https://docs.joinmastodon.org/methods/apps/#verify_credentials
    """
    reply = transport.read(account.get("/api/v1/apps/verify_credentials"))
    body = reply.json() if isinstance(reply, Reply) and reply.status == _OK else None
    name = body.get("name") if isinstance(body, dict) else None
    return account.hide(name) if isinstance(name, str) else None


def read_instance(transport: Transport, account: Account) -> Mapping[str, object] | Reply | Failed:
    """What the server says of itself; of an old one, by the first version of the call."""
    reply = transport.read(account.get("/api/v2/instance"))
    if isinstance(reply, Reply) and reply.status == _NOT_FOUND:
        reply = transport.read(account.get("/api/v1/instance"))
    body = reply.json() if isinstance(reply, Reply) and reply.status == _OK else None
    return body if isinstance(body, dict) else reply


def _note_newest(transport: Transport, account: Account, progress: Progress) -> Step:
    newest = newest_id(transport, account)
    if isinstance(newest, Reply | Failed):
        return _failure("The account's posts could not be read", newest, account)
    if newest is None:
        return Deferred(Reason.STEP_FAILED, "The account's newest post has no id.")
    return Ready({**progress, _NEWEST: account.hide(newest)})


def _upload(
    transport: Transport,
    account: Account,
    media: MediaStore,
    post: Post,
    progress: Progress,
    index: int,
    *,
    tries: int = 1,
) -> Step:
    """Upload one file. Repeated, it leaves one more that nobody sees and the server drops."""
    item = post.media[index]
    if not _has(media, item):
        return Deferred(Reason.STEP_FAILED, f"File {index + 1} is not in the media store.")
    form = [("description", item.alt)] if item.alt else []
    request = account.upload("/api/v2/media", form, _part(media, item, index))
    reply = transport.step(request)
    if isinstance(reply, Failed) or reply.status not in (_OK, _ACCEPTED):
        return _failure(f"File {index + 1} was not taken", reply, account)
    body = reply.json()
    media_id = body.get("id") if isinstance(body, dict) else None
    if not isinstance(media_id, str) or not media_id:
        return _failure(f"File {index + 1} was given no id", reply, account)
    upload = Upload(account.hide(media_id), ready=reply.status == _OK, tries=tries)
    kept = keep(post, progress, index, upload)
    if upload.ready:
        return More(kept)
    return Wait(kept, POLL_SECONDS, "the server is processing a file")


def _poll(
    transport: Transport,
    account: Account,
    media: MediaStore,
    post: Post,
    progress: Progress,
    index: int,
) -> Step:
    """Ask whether a file is processed; one the server has lost is uploaded again."""
    upload = uploads(post, progress)[index]
    reply = transport.read(account.get(f"/api/v1/media/{quote(upload.id, safe='')}"))
    if isinstance(reply, Reply) and reply.status == _OK:
        return More(keep(post, progress, index, Upload(upload.id, True, upload.tries)))
    if isinstance(reply, Reply) and reply.status == _PARTIAL:
        return Wait(progress, POLL_SECONDS, "the server is processing a file")
    lost = isinstance(reply, Reply) and reply.status == _NOT_FOUND
    if lost and upload.tries < UPLOAD_TRIES:
        return _upload(transport, account, media, post, progress, index, tries=upload.tries + 1)
    return _failure(f"File {index + 1} could not be processed", reply, account)


def _failure(what: str, reply: object, account: Account) -> Rejected | Deferred | Unauthorized:
    if isinstance(reply, Reply):
        return step_failure(what, reply, secrets=(account.token,))
    detail = reply.detail if isinstance(reply, Failed) else ""
    answer = reply.answer if isinstance(reply, Failed) else None
    return Deferred(Reason.STEP_FAILED, f"{what}: {account.hide(detail)}", answer=answer)


def _part(media: MediaStore, item: Media, index: int) -> FilePart:
    sha256 = item.sha256 or ""
    return FilePart(
        field="file",
        filename=item.name or f"{item.kind}-{index + 1}",
        type=item.type,
        size=item.size or 0,
        open=lambda: media.read(sha256),
    )


def _has(media: MediaStore, item: Media) -> bool:
    """Whether the store has the bytes. A missing file is not the network's failure."""
    try:
        next(iter(media.read(item.sha256 or "")), b"")
    except (LookupError, OSError):
        return False
    return True
