"""The harness's forge, with the children that are forked here."""

from __future__ import annotations

from publisher.rehearsal.cast import children
from publisher.rehearsal.restores.children import KINDS
from publisher.rehearsal.stage import forge

if __name__ == "__main__":
    children.KINDS.update(KINDS)
    forge.main()
