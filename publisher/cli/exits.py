"""The exit codes that acceptance scripts rely on."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What a command's exit code says."""

    DONE = 0
    NOT_AS_WISHED = 1
    """A post is not published, a row is bad, a wait ran out, a part of ``up`` died."""
    USAGE = 2
    """Bad usage or set-up; nothing was done."""
    NEEDS_A_PERSON = 3
    """May be live; nothing more happens by itself."""
    CONFLICT = 4
    """The job's state, or a key, does not allow it."""
    FAULT = 70
    """A fault of ours (EX_SOFTWARE in sysexits.h); ``--debug`` shows where."""
    INTERRUPTED = 130
    """Ctrl-C, as shells report it."""
