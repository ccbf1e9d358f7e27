"""Changes to a Python file's tables: a row gone, a row moved, a condition of a query gone.

Each is found in the tree of the source, so that a row added tomorrow is changed by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.mutation.literals import Source

OUTCOME = frozenset({"meaning", "verdict", "kind", "repeat_for", "listing_is_exhaustive"})
"""Columns of a row that say what it leads to."""
DECISIVE = frozenset({"can_look", "listing_is_exhaustive", "repeat_is_atomic", "repeat_for"})
"""What a format declares that decides about a second send."""
BELIEVED = {"validated_before_storing": "True", "validated": "EVERY"}
"""What makes a refusal a proof; given to every row that lacks it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """``start`` to ``end`` of the source, in bytes, and what stands there instead.

    ``within``: the table or function; ``whole``: its source, which tells when it was changed.
    """

    within: str
    whole: str
    kind: str
    was: str
    start: int
    end: int
    instead: str


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    node: ast.expr
    whole: str


def edits(source: Source, *, members: Mapping[str, tuple[str, ...]]) -> Iterator[Edit]:
    """Every change to the tables of a file; ``members``: of the enumerations, by class name."""
    fields = _fields(source.tree)
    for table in _tables(source):
        match table.node:
            case ast.Dict():
                yield from _of_dict(source, table, fields)
            case ast.Tuple(elts=rows) if rows and all(_is_row(row) for row in rows):
                yield from _of_rows(source, table, rows, fields)
            case ast.Call(func=ast.Name(id="frozenset"), args=[ast.Set(elts=items)]):
                yield from _of_set(source, table, items, members)
    yield from _declared(source)
    yield from _wheres(source)


def _tables(source: Source) -> Iterator[_Table]:
    for node in source.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        yield _Table(name, value, _squeezed(source.piece(value)))


def _is_row(node: ast.expr) -> bool:
    return isinstance(node, ast.Call | ast.Tuple)


def _fields(tree: ast.Module) -> dict[str, list[tuple[str, str, bool]]]:
    """Name, type and whether there is a default, of each class's fields."""
    return {
        node.name: [
            (field.target.id, ast.unparse(field.annotation), field.value is not None)
            for field in node.body
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        ]
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }


Fields = Mapping[str, list[tuple[str, str, bool]]]


def _of_rows(source: Source, table: _Table, rows: list[ast.expr], fields: Fields) -> Iterator[Edit]:
    for row in rows:
        yield _gone(source, table, row)
        if isinstance(row, ast.Call):
            yield from _of_call(source, table, row, rows, fields)
    yield from _pairs(source, table, rows)


def _of_call(
    source: Source, table: _Table, row: ast.Call, rows: list[ast.expr], fields: Fields
) -> Iterator[Edit]:
    """A row that is made by a call: moved, widened, believed, each keyword of it dropped."""
    declared = fields.get(_called(row), [])
    named = {name: value for name, value, _ in _columns(row, declared)}
    others = [
        {name: source.piece(value) for name, value, _ in _columns(each, declared)}
        for each in rows
        if isinstance(each, ast.Call)
    ]
    shown = _squeezed(source.piece(row))[:60]
    for name, value, keyword in _columns(row, declared):
        piece = source.piece(value)
        start, end = source.span(value)
        if name in OUTCOME:
            for other in sorted({each[name] for each in others if name in each} - {piece}):
                yield Edit(table.name, table.whole, "moved", shown, start, end, other)
        elif keyword is None and _may_be_any(declared, name) and piece not in {"None", "_ANY"}:
            yield Edit(table.name, table.whole, "widened", f"{name} of {shown}", start, end, "None")
        if keyword is not None:
            yield _gone(source, table, keyword, f"{keyword.arg} of {shown}", kind="dropped")
    end = source.span(row)[1] - 1
    for name, believed in BELIEVED.items():
        if any(each == name for each, _, _ in declared) and _lacks(source, named, name, believed):
            was = f"{name} of {shown}"
            more = f", {name}={believed}"
            if name in named:
                start, end = source.span(named[name])
                more = believed
                yield Edit(table.name, table.whole, "believed", was, start, end, more)
            else:
                start = _before_close(source, end)
                yield Edit(table.name, table.whole, "believed", was, start, start, more)


def _before_close(source: Source, close: int) -> int:
    """Where another argument goes: before a last comma there is none to add."""
    at = close
    while source.text[at - 1 : at] in {b" ", b"\n", b","}:
        at -= 1
    return at


def _lacks(source: Source, named: Mapping[str, ast.expr], name: str, value: str) -> bool:
    return name not in named or source.piece(named[name]) != value


def _columns(
    row: ast.expr, declared: list[tuple[str, str, bool]]
) -> list[tuple[str, ast.expr, ast.keyword | None]]:
    if not isinstance(row, ast.Call):
        return []
    named = [(name, value) for (name, _, _), value in zip(declared, row.args, strict=False)]
    keywords = [(word.arg or "", word.value, word) for word in row.keywords]
    return [*((name, value, None) for name, value in named), *keywords]


def _may_be_any(declared: list[tuple[str, str, bool]], name: str) -> bool:
    return any(each == name and "None" in kind.split(" | ") for each, kind, _ in declared)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _pairs(source: Source, table: _Table, rows: list[ast.expr]) -> Iterator[Edit]:
    """Rows of two, such as an exception and its end: the second becomes the next one there is."""
    seconds = {
        source.piece(row.elts[1]): None
        for row in rows
        if isinstance(row, ast.Tuple) and len(row.elts) == 2
    }
    for row in rows:
        if isinstance(row, ast.Tuple) and len(row.elts) == 2:
            piece = source.piece(row.elts[1])
            start, end = source.span(row.elts[1])
            shown = _squeezed(source.piece(row))
            others = [*seconds, *seconds]
            other = others[others.index(piece) + 1]
            yield Edit(table.name, table.whole, "moved", shown, start, end, other)


def _of_dict(source: Source, table: _Table, fields: Fields) -> Iterator[Edit]:
    node = table.node
    assert isinstance(node, ast.Dict)
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            continue
        start, end = source.span(key)[0], source.span(value)[1]
        shown = _squeezed(source.piece(key))
        if isinstance(value, ast.Call | ast.Name | ast.Tuple):
            yield Edit(table.name, table.whole, "row", shown, start, _past_comma(source, end), "")
        if isinstance(value, ast.Call):
            yield from _of_call(source, table, value, node.values, fields)
        if isinstance(value, ast.Name):
            others = {each.id for each in node.values if isinstance(each, ast.Name)} - {value.id}
            for other in sorted(others):
                place = source.span(value)
                yield Edit(table.name, table.whole, "moved", shown, *place, other)
        if isinstance(value, ast.Tuple) and len(value.elts) > 1:
            for item in value.elts:
                was = f"{shown}: {source.piece(item)}"
                yield _gone(source, table, item, was)


def _of_set(
    source: Source, table: _Table, items: list[ast.expr], members: Mapping[str, tuple[str, ...]]
) -> Iterator[Edit]:
    """A closed set: each member left out, and each that is not in it let in."""
    end = source.span(items[-1])[1]
    for item in items:
        if len(items) > 1:
            yield _gone(source, table, item)
    first = items[0]
    if isinstance(first, ast.Attribute) and isinstance(first.value, ast.Name):
        there = {item.attr for item in items if isinstance(item, ast.Attribute)}
        for other in members.get(first.value.id, ()):
            if other not in there:
                more = f"{first.value.id}.{other}"
                yield Edit(table.name, table.whole, "added", more, end, end, f", {more}")


def _declared(source: Source) -> Iterator[Edit]:
    """What a format declares of itself, turned round."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call) or _called(node) != "Capabilities":
            continue
        whole = _squeezed(source.piece(node))
        for keyword in node.keywords:
            if keyword.arg not in DECISIVE:
                continue
            place, piece = source.span(keyword.value), source.piece(keyword.value)
            instead = {"True": "False", "False": "True"}.get(piece, f"not ({piece})")
            if keyword.arg == "repeat_for":
                instead = "3600.0" if piece == "None" else "None"
            was = f"{keyword.arg}={piece}"
            yield Edit("Capabilities", whole, "declared", was, *place, instead)


def _wheres(source: Source) -> Iterator[Edit]:
    """Each argument of a query's ``where``."""
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr != "where":
                continue
            whole = _squeezed(source.piece(function))
            for condition in node.args:
                piece = source.piece(condition)
                instead = '__import__("sqlalchemy").true()'
                place = source.span(condition)
                if isinstance(condition, ast.Starred):
                    instead = f"*([{instead}])"
                yield Edit(function.name, whole, "guard", _squeezed(piece), *place, instead)


def _gone(
    source: Source,
    table: _Table,
    node: ast.expr | ast.keyword,
    was: str | None = None,
    *,
    kind: str = "row",
) -> Edit:
    start, end = source.span(node)
    shown = was or _squeezed(source.piece(node))[:80]
    return Edit(table.name, table.whole, kind, shown, start, _past_comma(source, end), "")


def _past_comma(source: Source, end: int) -> int:
    rest = source.text[end:]
    blank = len(rest) - len(rest.lstrip())
    return end + blank + 1 if rest[blank : blank + 1] == b"," else end


def absent_moves(source: Source, members: Mapping[str, tuple[str, ...]]) -> Iterator[Edit]:
    """Rows that the table of transitions does not have, each with where its event leads else."""
    table = next(each for each in _tables(source) if each.name == "TABLE")
    node = table.node
    assert isinstance(node, ast.Dict)
    leads: dict[str, str] = {}
    there = set()
    for key, value in zip(node.keys, node.values, strict=True):
        assert isinstance(key, ast.Tuple)
        state, event = source.piece(key.elts[0]), source.piece(key.elts[1])
        there.add((state, event))
        leads.setdefault(event, source.piece(value))
    end = source.span(node)[1] - 1
    for state in (f"S.{name}" for name in members["State"]):
        for event, to in leads.items():
            if (state, event) not in there:
                row = f"({state}, {event}): {to},"
                yield Edit("TABLE", table.whole, "added", row, end, end, f"    {row}\n")


def pairs(source: Source, members: Mapping[str, tuple[str, ...]]) -> Iterator[Edit]:
    """Moves that a migration's trigger lets through: each left out, each other let in."""
    table = next((each for each in _tables(source) if each.name == "PAIRS"), None)
    if table is None or not isinstance(table.node, ast.Constant):
        return
    there = str(table.node.value).split()
    begin, end = source.span(table.node)
    for pair in there:
        at = source.text.index(pair.encode(), begin)
        yield Edit("PAIRS", table.whole, "row", pair, at, at + len(pair), "")
    states = [name.lower() for name in members["State"]]
    for pair in (f"{a}>{b}" for a in states for b in states if a != b):
        if pair not in there:
            at = end - 3
            yield Edit("PAIRS", table.whole, "added", pair, at, at, f"{pair}\n")


def _squeezed(text: str) -> str:
    return " ".join(text.split())
