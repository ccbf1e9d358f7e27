"""Every check there is: its name, what it asks, what it needs, what it may find."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from publisher.doctor import (
    activity,
    alerts,
    channels,
    clock,
    disk,
    media,
    pooler,
    rights,
    schema,
    server,
    spools,
    witness,
    workers,
    zones,
)
from publisher.doctor.finding import Finding
from publisher.doctor.ward import Ward

FAILED: Final = "check_failed"
"""What any check may find: that it could not be made."""


class Needs(IntEnum):
    """What has to be there before a check is of use."""

    NOTHING = 0
    SERVER = 1
    SCHEMA = 2


class Group(StrEnum):
    """How checks are told together."""

    MACHINE = "this machine"
    SERVER = "the server"
    SESSIONS = "its sessions"
    SCHEMA = "the schema"
    SPOOL = "the spool"
    WITNESS = "the witness"
    CHANNELS = "channels"
    WORKERS = "workers"


@dataclass(frozen=True, slots=True)
class Check:
    """One concern. ``codes``: of the findings it may give."""

    name: str
    group: Group
    needs: Needs
    examine: Callable[[Ward], Iterable[Finding]]
    codes: tuple[str, ...]

    @property
    def question(self) -> str:
        """What it asks, in a sentence: the first of its function's docstring."""
        return (self.examine.__doc__ or "").strip().partition("\n")[0]


G, N = Group, Needs

CHECKS: Final = (
    Check("home", G.MACHINE, N.NOTHING, disk.home, ("home_missing", "home_unusable", "home_open")),
    Check("disk", G.MACHINE, N.NOTHING, disk.room, ("disk_full", "inodes_used_up")),
    Check("open-files", G.MACHINE, N.NOTHING, disk.open_files, ("few_files",)),
    Check("media", G.MACHINE, N.NOTHING, media.storage, ("media_unusable", "media_unreachable")),
    Check("clock", G.MACHINE, N.SERVER, clock.skew, ("clock_skew",)),
    Check("zones", G.MACHINE, N.SCHEMA, zones.rules, ("zone_unknown", "zones_differ", "zones_age")),
    Check(
        "fit",
        G.SERVER,
        N.SERVER,
        server.fit,
        (
            "version_too_old",
            "standby",
            "fsync_off",
            "full_page_writes_off",
            "synchronous_commit_off",
            "read_only",
            "schema_missing",
            "schema_older",
            "schema_newer",
        ),
    ),
    Check("overrides", G.SERVER, N.SERVER, server.overrides, ("setting_overridden",)),
    Check("damage", G.SERVER, N.SERVER, server.corruption, ("damage_hidden",)),
    Check("checksums", G.SERVER, N.SERVER, server.checksums, ("no_checksums",)),
    Check("standbys", G.SERVER, N.SERVER, server.standby_commits, ("standby_not_awaited",)),
    Check("wraparound", G.SERVER, N.SERVER, activity.wraparound, ("vacuum_behind",)),
    Check("connections", G.SERVER, N.SERVER, server.headroom, ("few_connections",)),
    Check(
        "pooler",
        G.SESSIONS,
        N.SERVER,
        pooler.session,
        ("session_settings_lost", "prepare_off", "direct_url_missing", "prepared_lost"),
    ),
    Check(
        "direct-url",
        G.SESSIONS,
        N.SCHEMA,
        pooler.direct,
        ("direct_url_closed", "direct_url_pooled", "direct_url_elsewhere"),
    ),
    Check("timeouts", G.SESSIONS, N.SERVER, server.timeouts, ("timeout_short",)),
    Check(
        "triggers-fire", G.SESSIONS, N.SERVER, server.replication_role, ("triggers_do_not_fire",)
    ),
    Check(
        "transactions",
        G.SESSIONS,
        N.SERVER,
        activity.transactions,
        ("idle_in_transaction", "old_transaction"),
    ),
    Check(
        "left-behind",
        G.SESSIONS,
        N.SERVER,
        activity.left_behind,
        ("prepared_transaction", "unused_slot"),
    ),
    Check("locks", G.SESSIONS, N.SERVER, activity.locks, ("lock_waited_for",)),
    Check("promise", G.SCHEMA, N.SCHEMA, schema.promise_index, ("promise_broken",)),
    Check(
        "unique-indexes",
        G.SCHEMA,
        N.SCHEMA,
        schema.unique_indexes,
        ("index_missing", "index_not_unique", "index_invalid", "index_changed"),
    ),
    Check(
        "other-indexes",
        G.SCHEMA,
        N.SCHEMA,
        schema.other_indexes,
        ("index_missing", "index_invalid", "index_changed"),
    ),
    Check(
        "tables",
        G.SCHEMA,
        N.SCHEMA,
        schema.tables,
        ("table_missing", "table_changed", "table_inherited"),
    ),
    Check(
        "constraints",
        G.SCHEMA,
        N.SCHEMA,
        schema.constraints,
        ("constraint_missing", "constraint_changed"),
    ),
    Check("foreign", G.SCHEMA, N.SCHEMA, schema.foreign_unique, ("constraint_foreign",)),
    Check(
        "triggers",
        G.SCHEMA,
        N.SCHEMA,
        schema.triggers,
        ("trigger_missing", "trigger_changed", "trigger_disabled", "trigger_foreign"),
    ),
    Check(
        "functions",
        G.SCHEMA,
        N.SCHEMA,
        schema.functions,
        ("function_missing", "function_changed", "function_foreign", "search_path_open"),
    ),
    Check("transitions", G.SCHEMA, N.SCHEMA, schema.transitions, ("transitions_differ",)),
    Check(
        "roles",
        G.SCHEMA,
        N.SERVER,
        rights.roles,
        ("role_powerful", "role_member", "login_superuser"),
    ),
    Check("owners", G.SCHEMA, N.SCHEMA, rights.owners, ("owner_other", "role_owns")),
    Check("grants", G.SCHEMA, N.SCHEMA, rights.grants, ("grant_extra", "grant_missing")),
    Check("others", G.SCHEMA, N.SCHEMA, rights.others, ("grant_to_others",)),
    Check("spool", G.SPOOL, N.NOTHING, spools.folder, ("spool_unusable", "spool_not_locking")),
    Check("spool-disk", G.SPOOL, N.NOTHING, spools.mount, ("spool_on_network", "spool_in_memory")),
    Check("spool-damaged", G.SPOOL, N.NOTHING, spools.damaged, ("spool_damaged",)),
    Check(
        "spool-database",
        G.SPOOL,
        N.SCHEMA,
        spools.against_database,
        ("spool_of_another", "begin_lost"),
    ),
    Check(
        "spool-waiting",
        G.SPOOL,
        N.SCHEMA,
        spools.waiting,
        ("spool_waits", "spool_unread", "spool_of_another_machine"),
    ),
    Check("frozen", G.SPOOL, N.SCHEMA, spools.frozen, ("worker_frozen",)),
    Check(
        "witness",
        G.WITNESS,
        N.SCHEMA,
        witness.agreement,
        (
            "witness_unusable",
            "witness_unreachable",
            "witness_unreadable",
            "witness_of_another",
            "witness_disagrees",
            "witness_missing",
            "witness_stale",
        ),
    ),
    Check("witness-reach", G.WITNESS, N.SCHEMA, witness.reach, ("witness_not_shared",)),
    Check(
        "quarantine",
        G.WITNESS,
        N.SCHEMA,
        witness.quarantine,
        ("quarantine_asks", "quarantine_unlooked", "quarantine_waits"),
    ),
    Check("gates", G.CHANNELS, N.SCHEMA, channels.gates, ("gate_missing", "channel_blocked")),
    Check("due", G.CHANNELS, N.SCHEMA, channels.due, ("due_on_blocked", "due_on_paused")),
    Check(
        "key", G.CHANNELS, N.SCHEMA, channels.key, ("key_missing", "key_of_another", "key_unusable")
    ),
    Check(
        "credentials",
        G.CHANNELS,
        N.SCHEMA,
        channels.credentials,
        ("credential_missing", "credential_closed"),
    ),
    Check("platforms", G.CHANNELS, N.SCHEMA, channels.platforms, ("platform_unknown",)),
    Check(
        "access",
        G.CHANNELS,
        N.SCHEMA,
        channels.access,
        ("access_refused", "access_ends", "access_unasked"),
    ),
    Check("running", G.WORKERS, N.SCHEMA, workers.running, ("no_worker", "overdue")),
    Check("silent", G.WORKERS, N.SCHEMA, workers.silent, ("worker_silent",)),
    Check("ended", G.WORKERS, N.SCHEMA, workers.ended, ("horizon_open",)),
    Check("doubts", G.WORKERS, N.SCHEMA, workers.doubts, ("looks_overdue", "doubts_wait")),
    Check("orphans", G.WORKERS, N.SCHEMA, workers.orphans, ("orphans",)),
    Check(
        "alerts",
        G.WORKERS,
        N.SCHEMA,
        alerts.addressees,
        (
            "alerts_unset",
            "alert_channel_missing",
            "alert_channel_unfit",
            "alert_to_nobody",
            "alert_queue_unserved",
            "alert_channel_closed",
        ),
    ),
    Check("metrics", G.WORKERS, N.SCHEMA, alerts.metrics, ("metrics_silent", "metrics_port_taken")),
)
