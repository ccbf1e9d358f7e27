"""The pieces of SQL in a Python file: where each stands, its name, how it is written back."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_SQL = re.compile(
    r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER TABLE|WHERE|ON CONFLICT)\b|^\s*AND "
)
_PREFIXED = re.compile(r"""^[fF]?("{3}|'{3}|"|')""")


@dataclass(frozen=True, slots=True)
class Literal:
    """One piece of SQL. ``name``: what it is assigned to, or the function it stands in.

    ``start`` and ``end``: bytes of the source. ``prefix`` and ``suffix``: what goes around ``text``
    when it is written back as it is; None where it has to be quoted anew.
    """

    name: str
    text: str
    start: int
    end: int
    prefix: str | None
    suffix: str | None

    def written(self, text: str) -> bytes:
        """Python source for ``text`` in this one's place."""
        if self.prefix is None or self.suffix is None:
            return repr(text).encode()
        return f"{self.prefix}{text}{self.suffix}".encode()


class Source:
    """A Python file, with byte offsets for the nodes of its tree."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.tree = ast.parse(text)
        lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        """Where ``node`` begins and ends, in bytes."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def piece(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """The source of ``node``."""
        start, end = self.span(node)
        return self.text[start:end].decode()


def literals(source: Source) -> Iterator[Literal]:
    """Every piece of SQL in the file, in order, under names that no other one has."""
    seen: Counter[str] = Counter()
    for name, node in _strings(source.tree, ""):
        literal = _literal(source, name, node)
        if literal is None or not _SQL.search(literal.text):
            continue
        seen[name] += 1
        number = f"#{seen[name]}" if seen[name] > 1 else ""
        yield Literal(
            f"{name}{number}",
            literal.text, literal.start, literal.end, literal.prefix, literal.suffix,
        )  # fmt: skip


def _literal(source: Source, name: str, node: ast.Constant | ast.JoinedStr) -> Literal | None:
    start, end = source.span(node)
    piece = source.text[start:end].decode()
    quote = _PREFIXED.match(piece)
    if quote and piece.endswith(quote[1]) and "\\" not in piece:
        inner = piece[quote.end() : -len(quote[1])]
        if isinstance(node, ast.JoinedStr) or inner == node.value:
            return Literal(name, inner, start, end, quote.group(), quote[1])
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return Literal(name, node.value, start, end, None, None)
    return None


def _strings(node: ast.AST, name: str) -> Iterator[tuple[str, ast.Constant | ast.JoinedStr]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue  # words about the code
        if isinstance(child, ast.JoinedStr) or (
            isinstance(child, ast.Constant) and isinstance(child.value, str)
        ):
            yield name, child
            continue
        yield from _strings(child, _name(child, name))


def _name(node: ast.AST, around: str) -> str:
    match node:
        case ast.FunctionDef(name=own) | ast.ClassDef(name=own):
            return f"{around}.{own}" if around else own
        case ast.Assign(targets=[ast.Name(id=own)]) | ast.AnnAssign(target=ast.Name(id=own)):
            return around or own
        case _:
            return around
