"""One thing wrong with one row: where, what, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from publisher.engine.errors import PublisherError


@dataclass(frozen=True, slots=True)
class Fault:
    """A reason not to import a row. ``fix`` may be empty where ``message`` says it already."""

    column: str
    message: str
    fix: str
    code: str


class FileRefused(PublisherError):
    """A file that cannot be read as rows at all. Nothing was stored."""

    def __init__(self, what: str, fix: str, *, code: str) -> None:
        super().__init__(f"{what} Nothing was stored. {fix}")
        self.code = code
        self.what = what
        self.fix = fix
