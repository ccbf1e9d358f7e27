"""A group of commands whose modules are imported when one of them is called, not before.

Every command is a process of its own, and most of what takes part in one has no part in another:
all of it together takes over a second to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from publisher.words import _


class Listed(NamedTuple):
    """A command as the list has it: ``help`` in English, ``place`` as ``module:name`` beside us."""

    name: str
    help: str
    place: str


class Lazily(TyperGroup):
    """A group of what its ``listed`` says."""

    listed: Sequence[Listed] = ()

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(**options)
        self._listed: Final = {one.name: one for one in self.listed}
        self.commands = {
            one.name: TyperCommand(one.name, help=_(one.help), rich_markup_mode=None)
            for one in self.listed
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - typer's own
        """As any group does; the command that is called is then the real one."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and command.name in self._listed:
            command = loaded(self._listed[command.name])
        return name, command, rest


def loaded(one: Listed) -> Any:  # noqa: ANN401 - typer's copy of click's command
    """Import the command's module and make its command, or its group of commands."""
    module, _colon, name = one.place.partition(":")
    found = getattr(import_module(f".{module}", __package__), name)
    group = typer.Typer(rich_markup_mode=None, add_completion=False)
    group.callback()(lambda: None)  # without one, a single command would stand for the group
    if isinstance(found, typer.Typer):
        group.add_typer(found, name=one.name, help=_(one.help))
    else:
        group.command(one.name, help=_(one.help))(found)
    made: Any = typer.main.get_command(group)
    return made.commands[one.name]
