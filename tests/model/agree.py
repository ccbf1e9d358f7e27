"""Where the two models speak of the same: promises, and the slips that both know.

Each was written apart from the other, so that what one takes for granted the other has to state.
What only one of them knows stands here with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tests.model import invariants
from tests.model.promela import spin

PROMISES: Final[Mapping[str, str]] = {
    invariants.DUPLICATE: "never_two",
    invariants.FALSE_SUCCESS: "published_is_there",
    invariants.HIDDEN: "not_live_is_not_there",
    invariants.TABLE_REFUSES: "in_the_table",
    invariants.UNHEARD: "published_wins",
    invariants.NO_WAY_OUT: "comes_to_rest",
}
"""What must hold: in Python → in Promela."""

ONLY_ASKED_HERE: Final[Mapping[str, str]] = {
    invariants.SECOND: "a warning of never_two: there it is seen when it is on the page",
    invariants.TWO_OPEN: "there the index that refuses it is asked before a begin",
    invariants.HOLDER: "there a holder is the token alone",
    invariants.GROUNDLESS: "there nobody remembers whether a hand ever started",
}

WORLDS: Final[Mapping[str, tuple[str, ...]]] = {
    "kernel": ("crash_and_cut", "crash_and_three_claims", "drain"),
    "edits": ("editors",),
    "doubts": ("cut_and_verdicts", "listing_that_hides"),
    "key": ("key_that_lapses",),
    "key for ever": ("key", "key_twice"),
    "two lookers": ("two_people",),
    "lost commits": ("restore_and_person", "restore_and_crash"),
    "lost settles": ("restore_and_cut",),
    "lost, and looked for": ("restore",),
}
"""What is searched without any slip, in Python → in Promela: about the same things can happen."""

WORLDS_ONLY_IN_PYTHON: Final[Mapping[str, str]] = {
    "listing": "it is there for look-alikes, which need a second post",
    "no page": "it is there for a refusal that is a lie, and there no platform lies",
    "lies": "so is this, and for people who say what is not so",
    "host": "there any crash may leave the file of a restarted machine",
    "lost, compacted": "there no file is compacted",
}

SAME: Final[Mapping[str, str]] = {
    "rescue requeues sending": "rescue_requeues_sending",
    "begin without the fence": "begin_without_fence",
    "send before begin commits": "send_before_begin",
    "timeout read as failure": "timeout_read_as_failure",
    "5xx read as failure": "server_error_read_as_failure",
    "lost COMMIT acknowledgement then sends": "lost_ack_then_sends",
    "late not-sent unfenced": "late_not_sent_unfenced",
    "fence by number": "fence_by_number",
    "a late published ignored": "late_published_ignored",
    "cancel ignores sending": "cancel_ignores_sending",
    "a new time for a post that is unknown": "new_time_for_unknown",
    "spool says not started, unread": "not_started_unread",
    "file read without its lock": "file_read_without_lock",
    "a file of another boot believed": "torn_file_trusted",
    "resend without proof the old process is gone": "resend_without_gone",
    "resend before the horizon": "horizon_not_waited",
    "absence trusted where the listing proves none": "absence_trusted",
    "a verdict of an old look applied to a new attempt": "old_look_new_attempt",
    "a look from before it could be decided": "look_before_unlock",
    "a claim that nobody rescues": "nobody_rescues_a_claim",
    "repeated after the key's life": "key_may_be_over",
    "repeated at any time under a key that is noted late": "repeat_at_any_time",
    "a safe repeat that hides a doubt": "repeat_hides_doubt",
    "absence said of one send of several": "newest_repeat_alone",
    "the witness ignored after a restore": "lost_commits_no_witness",
    "quarantine not held": "quarantine_not_held",
    "quarantine ended before what was lost has landed": "quarantine_not_waited",
    "a doubt from before a loss judged too soon": "unknown_not_quarantined",
    "what comes back skips its quarantine": "comes_back_and_not_held",
    "freed by its own worker after a loss, and not held": "freed_and_not_held",
}
"""Variants that break the same rule: in Python → in Promela."""

ONLY_IN_PYTHON: Final[Mapping[str, str]] = {
    "settle unfenced": "there a settle that matches nothing is a late answer at once, and that"
    " one's fence is late_not_sent_unfenced",
    "another job's id believed": "it needs a second post, and there is one",
    "strict matching used for absence": "so do look-alikes",
    "a damaged file believed": "there a damaged file is one of a restarted machine",
    "compaction misread": "there no file is compacted",
    "no look before a second send": "it shows where a platform lies, and there none does",
    "a refusal believed where nobody can look": "so does this",
    "a permit that never lapses": "there no hand holds a permit until a key is forgotten",
    "freed by a file after a loss, and not held": "there one line holds back for both who free it:"
    " freed_and_not_held",
    "a worker run's number believed after lost commits": "there a run's number is never given out"
    " again",
    "a forgotten run goes on claiming": "nor is a run's registration lost",
}

ONLY_IN_PROMELA: Final[Mapping[str, str]] = {
    "drained_is_returned": "it shows between a permit and the first byte, which is one step here",
    "no_id_believed": "here an answer names an id, ours or another's: another job's id believed",
    "move_outside_table": "cancel_ignores_sending again, to show that the table sees it too",
    "lost_send_judged_by_older": "here a doubt of before a loss waits until nothing can arrive,"
    " whichever attempt it is about",
    "quarantine_by_time": "it is of a used permit without its bytes, which is one step here",
}

Unequal = Mapping[tuple[str, str], str]
_TWO_STATES: Final = (
    "there a move is its two states; here it has a name, and under this one it leads elsewhere"
)
UNEQUAL: Final[Unequal] = {
    ("rescue requeues sending", "in_the_table"): _TWO_STATES,
    ("a new time for a post that is unknown", "in_the_table"): _TWO_STATES,
    ("lost COMMIT acknowledgement then sends", "published_wins"):
        "there it counts as unheard that a send without a record ends in doubt, though its answer"
        " said published; here that doubt is how it is heard",
}  # fmt: skip
"""(variant in Python, promise in Promela) on which they differ, with the reason."""


def in_promela(broken: Iterable[str]) -> frozenset[str]:
    """What Python says is broken, in the other's words; what only it asks is left out."""
    return frozenset(PROMISES[said] for said in broken if said not in ONLY_ASKED_HERE)


def asked(name: str) -> frozenset[str]:
    """Properties that mean the same on both sides for this variant of Promela's.

    After a restore it does not ask what the journal says of the page (docs/model-promela.md), and
    that something comes to rest is asked only where that is the slip.
    """
    variant = spin.VARIANTS[name]
    found = set(variant.asks)
    if variant.sizes["RESTORES"]:
        found.discard("not_live_is_not_there")
    return frozenset(found)
