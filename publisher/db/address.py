"""Where the database is and how to log in there: a connection URL taken apart, its secret kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from publisher.db.errors import AddressError

if TYPE_CHECKING:
    from pydantic import SecretStr
    from sqlalchemy import URL

_SCHEMES: Final = ("postgresql", "postgres", "postgresql+psycopg")


@dataclass(frozen=True, slots=True)
class Address:
    """The parameters libpq connects with; several hosts and TLS options included."""

    parameters: dict[str, str] = field(repr=False)

    @classmethod
    def parse(cls, url: SecretStr, variable: str) -> Address:
        """Take a ``postgresql://`` URL apart, as libpq does (its manual, section 32.1.1.2).

        Raises ``AddressError`` naming the environment ``variable`` and nothing from its value:
        even a part of an address that could not be read may be a part of a password.
        """
        scheme, separator, rest = url.get_secret_value().strip().partition("://")
        if scheme not in _SCHEMES or not separator:
            message = f"{variable} is no postgresql://user:password@host/database address."
            raise AddressError(message)
        try:
            parsed = conninfo_to_dict(f"postgresql://{rest}")
        except psycopg.Error:
            message = (
                f"{variable} cannot be read as postgresql://user:password@host/database."
                " Percent-encode what is special in the password, for example @ as %40."
            )
            raise AddressError(message) from None
        parameters = {name: str(value) for name, value in parsed.items() if value is not None}
        if "@" in parameters.get("host", ""):
            message = f"{variable} has two @; percent-encode the one in the password as %40."
            raise AddressError(message)
        return cls(parameters)

    @classmethod
    def of(cls, url: URL) -> Address:
        """Take a URL of the embedded server apart; it holds no password."""
        query = {name: str(value) for name, value in url.query.items()}
        return cls({"user": url.username or "", "dbname": url.database or "", **query})

    def with_options(self, options: dict[str, str]) -> dict[str, str]:
        """Return the parameters with ``options`` sent at start-up, after any the URL has.

        Sent with the start-up packet they are the session's defaults: RESET and DISCARD ALL, which
        pools run between users, lead back to them.
        """
        ours = " ".join(f"-c {name}={_escaped(value)}" for name, value in options.items())
        theirs = self.parameters.get("options", "")
        return {**self.parameters, "options": f"{theirs} {ours}".strip()}


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
