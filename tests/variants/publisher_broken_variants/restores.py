"""Broken variants of what notices a restore: a harness that lets one pass proves nothing."""

from __future__ import annotations

from publisher.rehearsal.restores.variants import Variant
from publisher.sandbox.behaviours import Behaviour
from publisher_broken_variants import patches_of_restores as patches

VARIANTS: dict[str, Variant] = {
    "the guard never compares": Variant("duplicate", patches.guard_never_compares),
    "a guard forgets with its connection": Variant(
        "duplicate", patches.guard_forgets, later=4,
        changes={
            "end": "left running", "cuts": True, "dumps_first": False, "sent_before": 2,
            "sent_after": 4,
        },
    ),
    "a clean look on a Page frees what is doubted": Variant(
        "duplicate", patches.strict_is_ignored, changes={"listing": Behaviour.LISTING_DELAYED}
    ),
    "what is due later was not sent": Variant(
        "duplicate", patches.due_later_is_let_go, platform="telegram", is_moved=True
    ),
    "the tick alone, without its mark": Variant(
        "duplicate", patches.tick_alone, changes={"end": "killed", "spool": "lost"}
    ),
    "expire ends what is in quarantine": Variant(
        "unreported", patches.expire_ends_the_quarantined, useful_for=6.0,
        changes={
            "outlives": True, "looks_late": True,
            "guards": ("DROP TRIGGER quarantine_kept ON jobs",),
        },
    ),
    "an answer of another content believed": Variant(
        "false success", patches.answer_of_another_content,
        posts=(("before", 1), ("after", 4), ("anew", 4)), changes={"end": "killed"},
    ),
}  # fmt: skip
