"""The command ``reconciler``: looks for posts whose outcome is unknown. It never sends.

It has nothing to do yet: unknown jobs wait for a person.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from publisher.words import _


def main() -> NoReturn:
    """Say so, and exit 0."""
    sys.stdout.write(
        _("The reconciler has nothing to do yet: posts that may be live wait for a person.")
        + "\n"
        + _("Next: {commands}").format(commands="publisher jobs list --state unknown")
        + "\n"
    )
    sys.exit(0)


if __name__ == "__main__":
    main()
