"""Every code a problem may carry: its HTTP status, what it means, and what to do next.

Pages under ``/api/v1/errors`` and the table in docs/api.md are made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from publisher.api.catalogue_entry import Entry
from publisher.api.catalogue_people import PEOPLE
from publisher.api.catalogue_posts import POSTS
from publisher.words import N_

_E = Entry

ENTRIES: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        # The request itself.
        "unauthenticated": _E(
            401,
            N_("No API token, or none that works"),
            N_("Send the header Authorization: Bearer with a token of this workspace."),
        ),
        "not-allowed": _E(
            403,
            N_("The token may not do that"),
            N_("Use a token with the scope that is named, of a person whose role has it."),
        ),
        "not-found": _E(
            404,
            N_("Nothing there by that name"),
            N_("Look at the list of what there is; ids of another workspace are not there."),
        ),
        "method-not-allowed": _E(
            405,
            N_("The address does not take that method"),
            N_("Use one of those that the header Allow names."),
        ),
        "body-too-large": _E(
            413, N_("The body is too large"), N_("Send less; pictures go to POST /api/v1/media.")
        ),
        "content-type-unknown": _E(
            415,
            N_("The body is of another type than this takes"),
            N_("Send JSON, with Content-Type: application/json."),
        ),
        "json-invalid": _E(
            400, N_("The body is no JSON"), N_("Mend the JSON at the place that is named.")
        ),
        "text-unstorable": _E(
            422,
            N_("A text holds a character that cannot be stored"),
            N_("Leave out NUL and halves of surrogate pairs."),
        ),
        "request-invalid": _E(
            422,
            N_("A part of the request is not as it should be"),
            N_("Mend the field that is named; errors lists them all."),
        ),
        "idempotency-key-missing": _E(
            400,
            N_("This needs an Idempotency-Key"),
            N_("Send a fresh random Idempotency-Key with it, and the same one when you repeat it."),
        ),
        "idempotency-key-reused": _E(
            422,
            N_("The Idempotency-Key was used for another request"),
            N_("Send the first request again for its answer, or a new key for new work."),
        ),
        "idempotency-still-running": _E(
            409,
            N_("The first request with this Idempotency-Key is still running"),
            N_("Send the same request again in a moment for its answer."),
        ),
        "precondition-missing": _E(
            428,
            N_("An edit must say what it was made on"),
            N_("Send If-Match with the ETag that you were given with the post."),
        ),
        "precondition-failed": _E(
            412,
            N_("Somebody saved since you read it"),
            N_("Read the post again, take what you need from both texts, and save again."),
        ),
        "ambiguous-job": _E(409, N_("More than one job answers to that"), N_("Give the whole id.")),
        "fault": _E(
            500,
            N_("A fault of ours"),
            N_(
                "Read what the request was about before anything else. The same request with the"
                " same Idempotency-Key is safe to repeat."
            ),
        ),
        "database-away": _E(
            503,
            N_("The database does not answer"),
            N_("Wait, then read what the request was about; with an Idempotency-Key, repeat it."),
        ),
        "busy-here": _E(
            503, N_("Too many requests at once"), N_("Wait for a second, then repeat it.")
        ),
        # Jobs.
        "conflict": _E(
            409, N_("The job's state does not allow that"), N_("Look at the job as it is now.")
        ),
        "sending-now": _E(
            409, N_("Too late: it is being sent"), N_("Wait for its end: POST …/wait.")
        ),
        "unknown-not-retryable": _E(
            409,
            N_("It may already be live"),
            N_("Look at the page, and record what you see: POST /api/v1/unknowns/…/resolve."),
        ),
        "already-live": _E(409, N_("It is live already"), N_("Nothing need be done.")),
        "too-late": _E(
            409,
            N_("Its useful time is over"),
            N_("Give a new useful_until, or let it be."),
        ),
        "begun": _E(
            409, N_("Its send was begun once"), N_("Schedule the post at a new time instead.")
        ),
        "not-held": _E(409, N_("It is not on hold"), N_("Look at the job as it is now.")),
        "in-quarantine": _E(
            409,
            N_("It is looked for on its page first"),
            N_("Wait: it is released, or a person is asked, by itself."),
        ),
        "replaced": _E(
            409, N_("Another job has taken its place"), N_("Look at the job that is named.")
        ),
        "open-job-exists": _E(
            409,
            N_("The post is under way on this channel already"),
            N_("Wait for the end of the job that is named, or cancel it while it is scheduled."),
        ),
        "key-exists": _E(
            409,
            N_("This job exists already"),
            N_("Look at it; to post again on purpose, give a new time."),
        ),
        "key-busy": _E(
            409, N_("Somebody adds the same job just now"), N_("Repeat it in a moment.")
        ),
        "duplicate-job": _E(
            409,
            N_("The same content is queued already"),
            N_("Wait for that job, or until the time that is named."),
        ),
        "time-without-zone": _E(
            422, N_("A time without a zone is no instant"), N_("Give an offset or a zone.")
        ),
        # Doubts.
        "already-decided": _E(
            409, N_("It is not in doubt, or no longer"), N_("Look at the job: it says what it is.")
        ),
        "look-is-old": _E(
            409, N_("It was sent again since you looked"), N_("Look again, then decide.")
        ),
        "taken": _E(409, N_("Somebody else looks after it"), N_("Ask them, or hand it over.")),
        "busy": _E(409, N_("Somebody is changing it just now"), N_("Repeat it in a moment.")),
        "sender-may-be-alive": _E(
            409,
            N_("The first send may still arrive"),
            N_("Wait until the time that is named, or have its worker run proved gone."),
        ),
        "not-this-post": _E(
            422, N_("That link is not this post"), N_("Choose one of the doubt's candidates.")
        ),
        "cannot-be-read": _E(
            409, N_("The platform does not show it just now"), N_("Repeat it in a while.")
        ),
        "not-confirmed": _E(
            422,
            N_("It must be confirmed by name"),
            N_("Send confirm with the name that is asked for."),
        ),
        "reason-missing": _E(
            422, N_("A decision needs a reason"), N_("Send reason; the journal keeps it.")
        ),
        "name-missing": _E(422, N_("A name is missing"), N_("Say to whom it is handed over.")),
        "same-post": _E(422, N_("Both links name one post"), N_("Give one of them.")),
        "worker-alive": _E(409, N_("That worker run is alive"), N_("Stop it instead.")),
        "serves-others": _E(
            409,
            N_("That worker run serves other workspaces, too"),
            N_("Whoever runs the deployment may state it gone: publisher workers declare-gone."),
        ),
        "worker-over": _E(409, N_("That worker run is over"), N_("Nothing need be stated.")),
        # Channels.
        "place-taken": _E(
            409,
            N_("That page is connected already"),
            N_("Use the channel that is named, or reconnect it."),
        ),
        "name-taken": _E(409, N_("That name is taken"), N_("Choose another name.")),
        "name-unusable": _E(422, N_("That cannot be a name"), N_("Give another.")),
        "remote-id-unusable": _E(
            422, N_("That is no id of a page"), N_("Give the platform's own id of it.")
        ),
        "url-unusable": _E(
            422, N_("That is no address we may use"), N_("Give it as https://server.example.")
        ),
        "token-empty": _E(422, N_("The credential is empty"), N_("Send it whole.")),
        "token-unusable": _E(
            422, N_("The credential holds what none has"), N_("Copy it again, whole.")
        ),
        "clone": _E(
            503,
            N_("This is a copy without its key; it sends nothing"),
            N_("Bring the key back, or rebind the deployment."),
        ),
        "vault": _E(
            503, N_("A credential cannot be used"), N_("Look at the sealing key, or reconnect.")
        ),
        # Times.
        "time-missing": _E(422, N_("There is no time"), N_("Give one.")),
        "time-unreadable": _E(
            422, N_("That is no time we can read"), N_("Write 2026-12-07T09:00:00+07:00.")
        ),
        "zone-missing": _E(422, N_("The time names no zone"), N_("Give zone, or an offset.")),
        "zone-unknown": _E(422, N_("There is no such zone"), N_("Give an IANA name.")),
        "zone-contradicts": _E(
            422, N_("Offset and zone contradict each other"), N_("Leave one of them out.")
        ),
        "time-not-real": _E(
            422, N_("That time does not exist there"), N_("Choose one of those that are named.")
        ),
        "time-twice": _E(422, N_("That time happens twice there"), N_("Say which, by its offset.")),
        "time-past": _E(422, N_("That time is past"), N_("Give a later one.")),
        "time-too-far": _E(422, N_("That time is too far ahead"), N_("Check the year.")),
        **POSTS,
        **PEOPLE,
        "error": _E(409, N_("It was refused"), N_("Read detail; nothing was done.")),
    }
)


def entry(code: str) -> Entry | None:
    """What is known of a code; None for one that has no page yet."""
    return ENTRIES.get(code)


def as_table() -> str:
    """Every code in Markdown, as docs/api.md has it."""
    lines = ["| code | status | it says | what to do |", "|---|---|---|---|"]
    lines += [
        f"| `{code}` | {one.status} | {one.title} | {one.next} |"
        for code, one in sorted(ENTRIES.items())
    ]
    return "\n".join(lines) + "\n"
