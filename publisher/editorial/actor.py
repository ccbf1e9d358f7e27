"""Who acts: a name for the journal, and the account behind it where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Person(Protocol):
    """Somebody who signed in; ``str`` of them is their name."""

    @property
    def id(self) -> int:
        """Their account's number."""
        ...

    @property
    def name(self) -> str:
        """As the journal has it."""
        ...


Who = str | Person
"""Either a person, or the bare name of whoever runs a command on the machine itself."""


@dataclass(frozen=True, slots=True)
class Actor:
    """What is stored of somebody who acts."""

    name: str
    user_id: int | None = None

    @classmethod
    def of(cls, who: Who) -> Actor:
        """The name, and the account's number where ``who`` has one."""
        if isinstance(who, str):
            return cls(who)
        return cls(who.name, who.id)

    def is_same(self, name: str, user_id: int | None) -> bool:
        """Whether that is the same person; by name where an account is not known of both."""
        if self.user_id is not None and user_id is not None:
            return self.user_id == user_id
        return self.name == name
