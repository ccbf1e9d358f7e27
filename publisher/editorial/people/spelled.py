"""What people write about themselves and their workspaces: addresses, names, slugs, zones."""

from __future__ import annotations

import re
from typing import Final

from publisher.editorial.people.roles import Role
from publisher.editorial.spelling import did_you_mean, is_one_line, quoted
from publisher.editorial.times import zones
from publisher.engine.errors import PublisherError
from publisher.words import _

_LONGEST_EMAIL: Final = 254
"""RFC 5321, section 4.5.3.1.3, without the angle brackets."""
_LONGEST_NAME: Final = 200
_EMAIL: Final = re.compile(r"[^@\s]{1,64}@[^@\s.]+(\.[^@\s.]+)*")
_SLUG: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", re.ASCII)


class Unusable(PublisherError):
    """Something written that cannot be used like this; ``field`` names it."""

    def __init__(self, message: str, *, code: str, field: str) -> None:
        super().__init__(message)
        self.code = code
        self.field = field


def email(written: str) -> str:
    """An address without the spaces around it. Raises ``Unusable``."""
    address = written.strip()
    if len(address) > _LONGEST_EMAIL or not is_one_line(address) or not _EMAIL.fullmatch(address):
        message = _("{given} is no e-mail address. Give one like name@example.org.")
        raise Unusable(message.format(given=quoted(address)), code="email-unusable", field="email")
    return address


def name(written: str) -> str:
    """A name of a person, a workspace or a token, on one line. Raises ``Unusable``."""
    given = written.strip()
    if not given or len(given) > _LONGEST_NAME or not is_one_line(given):
        message = _("The name {given} cannot be used. Give 1 to {n} characters on one line.")
        raise Unusable(
            message.format(given=quoted(given), n=_LONGEST_NAME),
            code="name-unusable",
            field="name",
        )
    return given


def is_slug(written: str) -> bool:
    """Whether a workspace may be called so; what is no slug need not be looked for."""
    return _SLUG.fullmatch(written) is not None


def slug(written: str) -> str:
    """What a workspace is called in addresses. Raises ``Unusable``."""
    given = written.strip()
    if not is_slug(given):
        message = _(
            "{given} cannot name a workspace. Give 1 to 40 lower-case letters, digits and hyphens,"
            " such as news-desk."
        )
        raise Unusable(message.format(given=quoted(given)), code="slug-unusable", field="slug")
    return given


def zone(written: str) -> str:
    """The name of a zone there is. Raises ``Unusable``."""
    given = written.strip()
    if given not in zones():
        message = _("There is no zone {given}. {fix}")
        fix = did_you_mean(given, zones()) or _("Give a name such as Asia/Ho_Chi_Minh.")
        raise Unusable(
            message.format(given=quoted(given), fix=fix), code="zone-unknown", field="zone"
        )
    return given


def role(written: str) -> Role:
    """A role there is. Raises ``Unusable``."""
    given = written.strip().lower()
    if given not in {*Role}:
        message = _("There is no role {given}. Give one of: {roles}.")
        raise Unusable(
            message.format(given=quoted(written), roles=", ".join(Role)),
            code="role-unknown",
            field="role",
        )
    return Role(given)
