"""A mutant put into a process that runs already, where only constants of its module change.

Importing the product takes longer than most tests do. Its functions look a constant up when they
are called, so a piece of SQL can be changed under them; whatever else is changed is imported anew.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path


def statements(before: bytes, after: bytes) -> list[str] | None:
    """What has to be executed in the module; None where that would not be the mutant.

    The assignments that differ, and those below them that are made from what they assign.
    """
    olds, news = ast.parse(before).body, ast.parse(after).body
    if len(olds) != len(news):
        return None
    changed: set[str] = set()
    chosen = []
    for old, new in zip(olds, news, strict=True):
        differs = ast.dump(old) != ast.dump(new)
        uses = {node.id for node in ast.walk(new) if isinstance(node, ast.Name)} & changed
        match new:
            case ast.Assign(targets=[ast.Name(id=name)]) if differs or uses:
                changed.add(name)
                chosen.append(ast.unparse(new))
            case ast.FunctionDef() | ast.ClassDef() if not differs:
                pass
            case _ if differs or uses:
                return None
    return chosen if all(name.startswith("_") for name in changed) else None


def is_imported(tree: Path, module: str, texts: list[str]) -> bool:
    """Whether a name that ``texts`` assign is imported anywhere: it would keep its old value."""
    names = "|".join(text.split(" = ")[0] for text in texts)
    where = re.compile(rf"from {re.escape(module)} import[^\n(]*(\([^)]*)?\b({names})\b")
    folders = ("publisher", "reconciler", "tests")
    files = (path for folder in folders for path in (tree / folder).rglob("*.py"))
    return any(where.search(path.read_text(errors="replace")) for path in files)
