"""Lines of JSON between the processes of a rehearsal."""

from __future__ import annotations

import json
import os
from typing import Any, TypeAlias

Order: TypeAlias = dict[str, Any]
Event: TypeAlias = dict[str, Any]


class Lines:
    """Lines of JSON out of a descriptor, as far as they have come."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._rest = b""

    def read(self) -> list[Event]:
        """What is there now. Raises ``EOFError`` when the other end is closed."""
        data = os.read(self.descriptor, 1 << 16)
        if not data:
            raise EOFError
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in whole]
