"""The command ``publisher``, and ``python -m publisher``."""

from __future__ import annotations

import sys
import traceback
from typing import NoReturn, TextIO

import sqlalchemy.exc
from pydantic import ValidationError

from publisher.cli import screen
from publisher.cli.app import app
from publisher.cli.exits import Exit
from publisher.db.errors import DatabaseError
from publisher.engine.errors import PublisherError
from publisher.telemetry import scrub
from publisher.words import _


def main() -> NoReturn:
    """Run one command; every end is an exit code, and no person sees a traceback unasked."""
    for stream in (sys.stdout, sys.stderr):
        _speak_utf8(stream)
    sys.exit(_run(debug="--debug" in sys.argv))


def _run(*, debug: bool) -> int:
    try:
        app(prog_name="publisher")
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the outermost net
        return _tell(error, debug=debug)
    return Exit.DONE


def _tell(error: Exception, *, debug: bool) -> int:
    """Say what went wrong in a line or two; the exit code tells whose turn it is."""
    code: int = Exit.USAGE
    match error:
        case PublisherError():
            screen.note(f"{error} ({error.code})")
            code = error.exit_code
        case DatabaseError():
            screen.note(str(error))
        case ValidationError():
            screen.note(*_settings_faults(error))
        case sqlalchemy.exc.OperationalError():
            # The connection broke, or the server refused, in the middle of a person's command.
            # What it had not committed was not done.
            said = scrub(_first_line(error.orig))
            screen.note(_("The database failed us: {said}").format(said=said))
        case _ if debug:
            traceback.print_exception(error)
            code = Exit.FAULT
        case _:
            said = f"{type(error).__name__}: {scrub(_first_line(error))}"
            again = f"publisher --debug {' '.join(sys.argv[1:])}"
            screen.note(
                _("A fault of ours: {said}").format(said=said),
                _("Where it comes from: {command}").format(command=again),
            )
            code = Exit.FAULT
    return code


def _first_line(error: object) -> str:
    return str(error).strip().partition("\n")[0]


def _settings_faults(error: ValidationError) -> list[str]:
    """Name each variable and what is wrong with it; never its value, which may be a secret."""
    lines = []
    for fault in error.errors(include_url=False, include_input=False):
        name = "_".join(str(part) for part in fault["loc"][:1]).upper()
        said = fault["msg"].removeprefix("Value error, ").rstrip(".")
        lines.append(f"PUBLISHER_{name}: {said}." if name else said)
    return lines


def _speak_utf8(stream: TextIO) -> None:
    """Texts are in any script; a terminal that cannot show a character gets its number."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    main()
