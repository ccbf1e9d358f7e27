"""The harness's forge, with the children that are forked here."""

from __future__ import annotations

from tests.crash import children, forge
from tests.crash.restores.children import KINDS

if __name__ == "__main__":
    children.KINDS.update(KINDS)
    forge.main()
