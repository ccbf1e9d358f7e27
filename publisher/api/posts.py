"""``/posts``: write one, edit it, see its versions, put it away."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from publisher.api import told_jobs, told_posts
from publisher.api.calls import Answer, Caller, Here, OptionalKey, RequiredKey, answered, once
from publisher.api.operations import operation
from publisher.api.problems import Problem, Refusal
from publisher.api.strict import INTEGER, Body, Cursor, Limit, numbered
from publisher.api.told_posts import PostChanged, PostList, PostWhole, VersionList
from publisher.editorial import drafts, labels, listing, post_pages, trash, versions
from publisher.editorial.documents import Document, Variant
from publisher.editorial.drafts import EditConflict
from publisher.editorial.edits import Change
from publisher.editorial.examination import examine, lengths
from publisher.editorial.people.roles import Permission
from publisher.engine import queries
from publisher.engine.content import Media, Post
from publisher.engine.errors import NotFound
from publisher.engine.queries import JobFilter
from publisher.words import _

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from publisher.engine.content import Media as MediaPart

router = APIRouter(tags=["posts"])
_JOBS: Final = 200
_HIGHEST: Final = 2**62
_LONGEST: Final = 250_000
PostNumber = Annotated[int, Path(ge=1, le=_HIGHEST, description="Its number.", examples=[518])]
ChannelNumber = Annotated[int, Field(ge=1, le=INTEGER)]
Text = Annotated[str, Field(max_length=_LONGEST)]
Link = Annotated[str, Field(max_length=_LONGEST)]
Label = Annotated[str, Field(max_length=1_000)]
Reference = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
IfMatch = Annotated[
    str,
    Header(
        alias="If-Match",
        pattern=r'^("r[0-9]{1,18}"|\*)$',
        description="The ETag of what you edited; `*` writes over whatever there is.",
        examples=['"r3"'],
    ),
]
ETAG: Final = {"ETag": "Names this state of the draft; send it back as If-Match."}


class MediaRef(Body):
    """A picture or video that was added before."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    alt: Annotated[str, Field(max_length=10_000, description="For those who cannot see it.")] = ""


class Parts(Body):
    """What is its own on one channel: the parts that are named, and no others."""

    text: Text | None = None
    link: Link | None = None
    media: Annotated[list[MediaRef], Field(max_length=100)] | None = None
    first_comment: Text | None = None


class PostBody(Body):
    """What a post says."""

    text: Text
    link: Link | None = None
    media: list[MediaRef] = Field(default=[], max_length=100)
    first_comment: Text | None = None
    variants: dict[Annotated[str, Field(pattern=r"^[1-9][0-9]{0,8}$")], Parts] = Field(
        default={}, max_length=100, description="By channel's number: what is its own there."
    )
    channels: Annotated[list[ChannelNumber], Field(max_length=100)] | None = Field(
        default=None, description="Which it is meant for. Left out in an edit: as before."
    )


class NewPost(PostBody):
    """A post to write."""

    external_reference: Reference | None = Field(
        default=None, description="Your own name for it: unique here, and searched by."
    )
    labels: list[Label] = Field(default=[], max_length=100)


class Named(Body):
    """What to put on, and what to take off."""

    add: list[Label] = Field(default=[], max_length=100)
    remove: list[Label] = Field(default=[], max_length=100)


class PostQuery(BaseModel):
    """Which posts."""

    model_config = ConfigDict(extra="forbid")

    external_reference: str | None = Field(default=None, max_length=200)
    limit: Limit = 50
    cursor: Cursor = None


_EXAMPLE: Final = {
    "text": "The library opens at nine.",
    "channels": [7],
    "variants": {"7": {"text": "The library opens at nine. #library"}},
    "external_reference": "cms-518",
}


@operation(router, "GET", "/posts", Permission.POSTS_READ, PostList)
def list_posts(query: Annotated[PostQuery, Query()], here: Here) -> Response:
    """List posts that were saved and are not in the trash, the newest first."""
    before = numbered(query.cursor)
    with here.transaction() as conn:
        rows = listing.page(
            conn, limit=query.limit + 1, before=before, ref=query.external_reference
        )
    shown = rows[: query.limit]
    more = str(shown[-1].id) if len(rows) > query.limit else None
    return answered(PostList(posts=[told_posts.listed(one) for one in shown], next_cursor=more))


@operation(
    router,
    "POST",
    "/posts",
    Permission.POSTS_WRITE,
    PostWhole,
    status=201,
    headers={"Location": "The post's address.", **ETAG},
    example=_EXAMPLE,
)
def write_post(here: Here, request: Request, body: NewPost, key: RequiredKey) -> Response:
    """Write a post: its first version, which is not approved. Nothing is sent.

    What stands in the way of an approval is told in problems.
    """

    def write(conn: Connection) -> Answer:
        document = _document(conn, here, body)
        draft = drafts.new(
            conn,
            document,
            who=here.person,
            channel_ids=body.channels or (),
            ref=body.external_reference,
        )
        versions.save(
            conn,
            draft.post_id,
            document,
            revision=draft.revision,
            who=here.person,
            registry=here.desk.registry,
        )
        if body.labels:
            labels.label(conn, draft.post_id, who=here.person, add=body.labels)
        told = read(conn, here, draft.post_id)
        return Answer(told, status=201, headers={"Location": told.url, "ETag": etag(told)})

    return once(here, request, key, write)


@operation(router, "GET", "/posts/{post}", Permission.POSTS_READ, PostWhole, headers=ETAG)
def show_post(post: PostNumber, here: Here) -> Response:
    """Show one post: what it says, where it stands, what became of it where."""
    with here.transaction() as conn:
        told = read(conn, here, post)
    return answered(told, headers={"ETag": etag(told)})


@operation(
    router,
    "PUT",
    "/posts/{post}",
    Permission.POSTS_WRITE,
    PostChanged,
    more=(412, 428),
    headers=ETAG,
    example={"text": "The library opens at ten."},
)
def edit_post(
    post: PostNumber, here: Here, request: Request, body: PostBody, if_match: IfMatch
) -> Response:
    """Make this the next version, if nobody saved since. It is not approved by that.

    What is scheduled is held until it is, or goes out in the approved version: as the workspace's
    rule says.
    """

    def save(conn: Connection) -> Answer:
        read(conn, here, post)
        saved = versions.save(
            conn,
            post,
            _document(conn, here, body),
            revision=None if if_match == "*" else int(if_match.strip('"r')),
            who=here.person,
            registry=here.desk.registry,
            channel_ids=body.channels,
        )
        return changed(conn, here, post, new=saved.is_new, changes=saved.changes)

    try:
        return once(here, request, None, save)
    except EditConflict as conflict:
        current = told_posts.words(conflict.theirs.document).model_dump(mode="json")
        yours = told_posts.words(conflict.yours).model_dump(mode="json")
        raise Refusal(
            Problem.of(
                "edited-meanwhile",
                str(conflict),
                field="If-Match",
                current={"etag": f'"r{conflict.theirs.revision}"', "words": current},
                yours={"words": yours},
            )
        ) from conflict


@operation(router, "GET", "/posts/{post}/versions", Permission.POSTS_READ, VersionList)
def list_versions(post: PostNumber, here: Here) -> Response:
    """List every version of a post, with its hash and its approval."""
    with here.transaction() as conn:
        page = _page(conn, post)
    return answered(VersionList(versions=[told_posts.version(one) for one in page.versions]))


@operation(
    router,
    "POST",
    "/posts/{post}/labels",
    Permission.POSTS_WRITE,
    PostChanged,
    example={"add": ["weekly"], "remove": []},
)
def label_post(
    post: PostNumber, here: Here, request: Request, body: Named, key: OptionalKey = None
) -> Response:
    """Put labels on a post, and take others off."""

    def label(conn: Connection) -> Answer:
        before = read(conn, here, post).labels
        after = labels.label(conn, post, who=here.person, add=body.add, remove=body.remove)
        return changed(conn, here, post, new=before != list(after))

    return once(here, request, key, label)


@operation(
    router,
    "POST",
    "/posts/{post}/assignees",
    Permission.POSTS_WRITE,
    PostChanged,
    example={"add": ["night desk"], "remove": []},
)
def assign_post(
    post: PostNumber, here: Here, request: Request, body: Named, key: OptionalKey = None
) -> Response:
    """Give a post to people, and take it from others."""

    def assign(conn: Connection) -> Answer:
        before = read(conn, here, post).assignees
        after = labels.assign(conn, post, who=here.person, add=body.add, remove=body.remove)
        return changed(conn, here, post, new=before != list(after))

    return once(here, request, key, assign)


@operation(router, "POST", "/posts/{post}/trash", Permission.POSTS_WRITE, PostChanged)
def trash_post(post: PostNumber, here: Here, request: Request, key: OptionalKey = None) -> Response:
    """Put a post into the trash, with nothing of it under way."""
    return _moved(here, request, post, key, lambda conn: trash.trash(conn, post, who=here.person))


@operation(router, "POST", "/posts/{post}/restore", Permission.POSTS_WRITE, PostChanged)
def restore_post(
    post: PostNumber, here: Here, request: Request, key: OptionalKey = None
) -> Response:
    """Take a post out of the trash, as it was."""
    return _moved(here, request, post, key, lambda conn: trash.restore(conn, post, who=here.person))


def read(conn: Connection, here: Caller, post: int) -> PostWhole:
    """Everything about a post. Raises ``NotFound``, also for another workspace's."""
    page = _page(conn, post)
    draft = page.draft
    problems = examine(
        conn, here.desk.registry, draft.document, draft.channel_ids, post_id=page.id, due=page.due
    )
    counted = lengths(conn, here.desk.registry, draft.document, draft.channel_ids)
    rows = queries.job_page(conn, JobFilter(post_id=post), limit=_JOBS)
    tries = here.desk.settings.tries
    gone = queries.job_rows(conn, only=[one.id for one in page.removals]) if page.removals else ()
    return told_posts.whole(
        page,
        problems,
        counted,
        [told_jobs.job(row, tries) for row in rows],
        [told_jobs.job(row, tries) for row in gone],
    )


def changed(
    conn: Connection, here: Caller, post: int, *, new: bool, changes: Collection[Change] = ()
) -> Answer:
    """How the post is after an act."""
    told = read(conn, here, post)
    listed = [told_posts.change(one) for one in changes]
    return Answer(PostChanged(post=told, new=new, changes=listed), headers={"ETag": etag(told)})


def etag(told: PostWhole) -> str:
    """Names the state of the draft."""
    return f'"r{told.revision}"'


def _moved(
    here: Caller, request: Request, post: int, key: str | None, act: Callable[[Connection], bool]
) -> Response:
    def move(conn: Connection) -> Answer:
        _page(conn, post)
        return changed(conn, here, post, new=act(conn))

    return once(here, request, key, move)


def _page(conn: Connection, post: int) -> post_pages.PostPage:
    try:
        return post_pages.read(conn, post)
    except NotFound:
        raise NotFound(_("There is no post {id} here.").format(id=post)) from None


def _document(conn: Connection, here: Caller, body: PostBody) -> Document:
    return Document(
        Post(body.text, body.link or None, _media(conn, here, body.media, "media")),
        body.first_comment,
        {
            int(number): _variant(conn, here, parts, f"variants.{number}.media")
            for number, parts in body.variants.items()
        },
    )


def _variant(conn: Connection, here: Caller, parts: Parts, field: str) -> Variant:
    """Its own parts are those that were sent, also where they were sent as null."""
    own: dict[str, Any] = {name: getattr(parts, name) for name in parts.model_fields_set}
    if "text" in own:
        own["text"] = own["text"] or ""
    if "media" in own:
        own["media"] = _media(conn, here, own["media"] or [], field)
    return Variant.of(**own)


def _media(
    conn: Connection, here: Caller, items: list[MediaRef], field: str
) -> tuple[MediaPart, ...]:
    found: list[Media] = []
    for number, item in enumerate(items, 1):
        try:
            kept = here.desk.parts.library.find(conn, item.sha256)
        except NotFound:
            detail = _("The file {sha256} is not kept here. Add it first.")
            raise Refusal(
                Problem.of(
                    "media-missing",
                    detail.format(sha256=item.sha256[:12]),
                    field=f"{field}.{number}",
                )
            ) from None
        found.append(kept.described(item.alt))
    return tuple(found)
