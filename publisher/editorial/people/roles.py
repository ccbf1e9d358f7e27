"""Roles and what each may do: the one table that pages, API, commands and tests read.

Roles are no ladder: nothing compares two of them, everything asks for a permission by its name.
The names are also the scopes of API tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from publisher.words import N_


class Permission(StrEnum):
    """One thing that somebody may do. ``….read`` sees it and changes nothing."""

    POSTS_READ = "posts.read"
    POSTS_WRITE = "posts.write"
    POSTS_APPROVE = "posts.approve"
    POSTS_SCHEDULE = "posts.schedule"
    POSTS_DELETE_LIVE = "posts.delete_live"
    MEDIA_WRITE = "media.write"
    JOBS_READ = "jobs.read"
    JOBS_MANAGE = "jobs.manage"
    UNKNOWNS_READ = "unknowns.read"
    UNKNOWNS_RESOLVE = "unknowns.resolve"
    UNKNOWNS_FORCE = "unknowns.force"
    CHANNELS_READ = "channels.read"
    CHANNELS_PAUSE = "channels.pause"
    CHANNELS_CONNECT = "channels.connect"
    TOKENS_OWN = "tokens.own"
    TOKENS_MANAGE = "tokens.manage"
    USERS_READ = "users.read"
    USERS_MANAGE = "users.manage"
    WORKSPACE_MANAGE = "workspace.manage"
    JOURNAL_READ = "journal.read"


class Role(StrEnum):
    """What a person is in one workspace."""

    VIEWER = "viewer"
    EDITOR = "editor"
    APPROVER = "approver"
    OPERATOR = "operator"
    ADMIN = "admin"


MEANING: Final[Mapping[Permission, str]] = MappingProxyType(
    {
        Permission.POSTS_READ: N_("See posts, their versions and their media"),
        Permission.POSTS_WRITE: N_("Write and edit posts, ask for approval, use the trash"),
        Permission.POSTS_APPROVE: N_("Approve a version or ask for changes"),
        Permission.POSTS_SCHEDULE: N_("Give times, take them back, publish again on purpose"),
        Permission.POSTS_DELETE_LIVE: N_("Delete a post from the page where it is live"),
        Permission.MEDIA_WRITE: N_("Add pictures and films"),
        Permission.JOBS_READ: N_("See every send and its attempts"),
        Permission.JOBS_MANAGE: N_("Cancel, restore and send again what is proved not published"),
        Permission.UNKNOWNS_READ: N_("See what may be live"),
        Permission.UNKNOWNS_RESOLVE: N_("Record what became of a post that may be live"),
        Permission.UNKNOWNS_FORCE: N_("Send again although the first may be live"),
        Permission.CHANNELS_READ: N_("See channels and how they are"),
        Permission.CHANNELS_PAUSE: N_("Pause and resume a channel"),
        Permission.CHANNELS_CONNECT: N_("Connect and reconnect a channel"),
        Permission.TOKENS_OWN: N_(
            "See and end one's own sessions, make and revoke one's own API tokens"
        ),
        Permission.TOKENS_MANAGE: N_("See and revoke everybody's API tokens"),
        Permission.USERS_READ: N_("See who is in the workspace"),
        Permission.USERS_MANAGE: N_("Invite people, give roles, disable accounts"),
        Permission.WORKSPACE_MANAGE: N_("Change the workspace's name, zone and rules"),
        Permission.JOURNAL_READ: N_("Read who did what and when"),
    }
)

_SEES: Final = frozenset(
    {
        Permission.POSTS_READ,
        Permission.JOBS_READ,
        Permission.UNKNOWNS_READ,
        Permission.CHANNELS_READ,
        Permission.USERS_READ,
    }
)
_WRITES: Final = frozenset(
    {Permission.POSTS_WRITE, Permission.MEDIA_WRITE, Permission.POSTS_SCHEDULE}
)

PERMISSIONS: Final[Mapping[Role, frozenset[Permission]]] = MappingProxyType(
    {
        Role.VIEWER: _SEES,
        Role.EDITOR: _SEES | _WRITES | {Permission.TOKENS_OWN},
        Role.APPROVER: _SEES
        | _WRITES
        | {
            Permission.POSTS_APPROVE,
            Permission.POSTS_DELETE_LIVE,
            Permission.TOKENS_OWN,
            Permission.JOURNAL_READ,
        },
        # At three in the morning: everything about sending, nothing about what is said.
        Role.OPERATOR: _SEES
        | {
            Permission.JOBS_MANAGE,
            Permission.UNKNOWNS_RESOLVE,
            Permission.UNKNOWNS_FORCE,
            Permission.CHANNELS_PAUSE,
            Permission.TOKENS_OWN,
            Permission.JOURNAL_READ,
        },
        Role.ADMIN: frozenset(Permission),
    }
)

REAUTHENTICATED: Final = frozenset(
    {
        Permission.CHANNELS_CONNECT,
        Permission.UNKNOWNS_FORCE,
        Permission.TOKENS_OWN,
        Permission.USERS_MANAGE,
    }
)
"""What a page asks the password for once more, unless it was given minutes ago."""


def allows(role: Role, permission: Permission) -> bool:
    """Whether ``role`` may do that."""
    return permission in PERMISSIONS[role]


def as_table() -> str:
    """The whole table in Markdown, as docs/people.md has it."""
    roles = [*Role]
    lines = [
        f"| permission | it lets one | {' | '.join(roles)} |",
        f"|---|---|{'---|' * len(roles)}",
    ]
    for permission in Permission:
        marks = " | ".join("✔" if allows(role, permission) else "" for role in roles)
        lines.append(f"| `{permission}` | {MEANING[permission]} | {marks} |")
    return "\n".join(lines) + "\n"


def _check(table: Mapping[Role, frozenset[Permission]], meaning: Mapping[Permission, str]) -> None:
    """Raise ``AssertionError`` for a table in which something is forgotten or senseless."""
    faults = [f"no permissions for {role}" for role in Role if not table.get(role)]
    faults += [f"no meaning of {one}" for one in Permission if one not in meaning]
    held = frozenset[Permission]().union(*table.values())
    faults += [f"nobody has {one}" for one in Permission if one not in held]
    faults += [
        f"{role} may {one} and not see it"
        for role, permissions in table.items()
        for one in permissions
        if (seen := _read_of(one)) is not None and seen not in permissions
    ]
    faults += [f"viewer may {one}" for one in table.get(Role.VIEWER, ()) if not _only_sees(one)]
    if faults:
        message = f"the table of roles is wrong: {'; '.join(sorted(faults))}"
        raise AssertionError(message)


def _read_of(permission: Permission) -> Permission | None:
    name = f"{permission.partition('.')[0]}.read"
    return Permission(name) if name in {*Permission} else None


def _only_sees(permission: Permission) -> bool:
    return permission.endswith(".read")


_check(PERMISSIONS, MEANING)
