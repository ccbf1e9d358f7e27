"""Codes of people, their tokens and links, of a channel's times, and of signed addresses."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from publisher.api.catalogue_entry import Entry
from publisher.words import N_

_E = Entry

PEOPLE: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        "email-unusable": _E(422, N_("That is no e-mail address"), N_("Mend it.")),
        "user-exists": _E(
            409,
            N_("They are in the workspace already"),
            N_("Give them another role: PUT /api/v1/users/…/role."),
        ),
        "user-disabled": _E(409, N_("Their account is disabled"), N_("Enable it first.")),
        "last-admin": _E(
            409,
            N_("The workspace would be left without an admin"),
            N_("Make somebody else an admin first."),
        ),
        "account-elsewhere": _E(
            409,
            N_("The account is in other workspaces, too"),
            N_("Take them out of yours, or ask whoever runs the deployment."),
        ),
        "scope-unknown": _E(
            422, N_("There is no such scope"), N_("GET /api/v1/me lists those you have.")
        ),
        "scopes-missing": _E(422, N_("A token needs a scope"), N_("Name at least one.")),
        "lifetime-unusable": _E(422, N_("A token cannot last so long"), N_("Give fewer days.")),
        "no-posting-times": _E(
            409,
            N_("The channel has no posting times"),
            N_("Add some: POST /api/v1/channels/…/posting-times."),
        ),
        "no-free-time": _E(
            409, N_("No posting time is free for weeks"), N_("Choose a time yourself.")
        ),
        "times-busy": _E(
            409, N_("Somebody is taking a time just now"), N_("Repeat it in a moment.")
        ),
        "posting-time-unreadable": _E(
            422, N_("That is no posting time"), N_("Write it as mon 09:00, or weekdays 12:30.")
        ),
        "rule-out-of-bounds": _E(
            422, N_("A channel cannot have that rule"), N_("Give what detail says is possible.")
        ),
        "media-url-forged": _E(
            403, N_("The address is not signed by us"), N_("Ask for a new address.")
        ),
        "media-url-expired": _E(410, N_("The address has expired"), N_("Ask for a new address.")),
        "media-url-lifetime": _E(
            422, N_("An address cannot work for so long"), N_("Give 1 to 604800 seconds.")
        ),
    }
)
