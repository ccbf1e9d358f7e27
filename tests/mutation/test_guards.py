"""What the list of mutants finds in SQL and in tables, and that it goes on finding it."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.mutation import edits, sql
from tests.mutation.catalogue import ROOT, Mutant, mutants
from tests.mutation.literals import Source, literals


def changed(text: str) -> set[tuple[str, str, str]]:
    return {(cut.kind, text[cut.start : cut.end], cut.instead) for cut in sql.cuts(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1 FROM jobs WHERE id = 1", {("guard", "id = 1", "true")}),
        ("DELETE FROM t WHERE a = %s AND b", {
            ("guard", "a = %s", "(%s::text IS NULL OR true)"), ("guard", "b", "true")}),
        ("UPDATE t SET a = 1 WHERE a BETWEEN 1 AND 2 AND b -- AND c\n RETURNING a", {
            ("guard", "a BETWEEN 1 AND 2", "true"), ("guard", "b", "true")}),
        ("SELECT FROM a JOIN b ON a.x = b.x LEFT JOIN c ON true WHERE a.t = 'x AND y'", {
            ("guard", "a.x = b.x", "true"), ("guard", "a.t = 'x AND y'", "true")}),
        ("SELECT a FROM t WHERE (b IS NULL OR b IS DISTINCT FROM 1) ORDER BY a", {
            ("guard", "b IS NULL OR b IS DISTINCT FROM 1", "true"),
            ("or", "b IS NULL", "false"), ("or", "b IS DISTINCT FROM 1", "false")}),
        ("SELECT a = 1 AND NOT b AS c, CASE WHEN d THEN 1 END FROM t", {
            ("guard", "a = 1", "true"), ("guard", "NOT b", "true"), ("case", "d", "false")}),
        ("INSERT INTO t VALUES (1) ON CONFLICT (a, b) DO NOTHING RETURNING a", {
            ("conflict", "ON CONFLICT (a, b) DO NOTHING", "")}),
        ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = f(c) WHERE t.b < 1", {
            ("conflict", "ON CONFLICT (a) DO UPDATE SET b = f(c) WHERE t.b < 1", ""),
            ("conflict", "UPDATE SET b = f(c) WHERE t.b < 1", "NOTHING"),
            ("guard", "t.b < 1", "true")}),
        ("CREATE TABLE t (a int PRIMARY KEY, b int CHECK (b > 0), UNIQUE (a, b))", {
            ("unique", "PRIMARY KEY", "CHECK (true)"), ("guard", "b > 0", "true"),
            ("unique", "UNIQUE (a, b)", "CHECK (true)")}),
        ("CREATE UNIQUE INDEX i ON t (a) WHERE b; CREATE INDEX k ON t (b) WHERE c;", {
            ("unique", "UNIQUE ", ""), ("guard", "b", "true")}),
        ("CREATE TRIGGER x BEFORE UPDATE OR DELETE ON t EXECUTE FUNCTION f();", {
            ("trigger", "CREATE TRIGGER x BEFORE UPDATE OR DELETE ON t EXECUTE FUNCTION f();", ""),
            ("trigger", "UPDATE OR ", ""), ("trigger", "OR DELETE", "")}),
        ("$$ BEGIN IF a AND b THEN RAISE EXCEPTION 'no'; END IF; EXIT WHEN c; END $$", {
            ("rule", "a AND b", "false"), ("guard", "a", "true"), ("guard", "b", "true"),
            ("guard", "c", "true")}),
        (" AND coalesce(a, b) = b", {("guard", " AND coalesce(a, b) = b", "")}),
    ],
)  # fmt: skip
def test_every_guard_of_a_statement(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert changed(text) == expected


def test_a_piece_goes_back_where_it_stood() -> None:
    text = b'''"""Words, SELECT or not."""
_ONE = """
SELECT a FROM t WHERE b
"""
_TWO = "SELECT " "a WHERE 'x'"

def f():
    """UPDATE nothing."""
    run(f"UPDATE t SET {x} WHERE id = 1")
'''
    source = Source(text)
    found = {each.name: each for each in literals(source)}
    assert list(found) == ["_ONE", "_TWO", "f"]
    for each in found.values():
        again = text[: each.start] + each.written(each.text) + text[each.end :]
        assert ast.dump(ast.parse(again)) == ast.dump(source.tree)


LIST = b"""
class Row:
    name: str
    meaning: Meaning
    status: int | None
    says: tuple[str, ...] = ()
    validated_before_storing: bool = False

ROWS = (
    Row("a", Meaning.REJECTED, 400, says=("x",)),
    Row("b", Meaning.DEFERRED, None, validated_before_storing=True),
)
ENDS = ((Late, End.LATE), (Used, End.USED))
OPEN = frozenset({State.A, State.B})
"""


def test_every_row_of_a_list() -> None:
    source = Source(LIST)
    found = Counter(
        (edit.within, edit.kind) for edit in edits.edits(source, members={"State": ("A", "B", "C")})
    )
    assert found == {
        ("ROWS", "row"): 2,
        ("ROWS", "moved"): 2,
        ("ROWS", "widened"): 1,
        ("ROWS", "dropped"): 2,
        ("ROWS", "believed"): 1,
        ("ENDS", "row"): 2,
        ("ENDS", "moved"): 2,
        ("OPEN", "row"): 2,
        ("OPEN", "added"): 1,
    }


def of(found: list[Mutant], path: str, within: str, kind: str) -> list[Mutant]:
    return [each for each in found if (each.path, each.within, each.kind) == (path, within, kind)]


def test_the_guards_that_hold_the_promise_are_all_there() -> None:
    found = mutants()
    begun = "publisher/engine/ledger/begin.py"
    assert "j.token = go.token" in {each.was for each in of(found, begun, "_BEGIN", "guard")}
    kernel = "migrations/versions/0001_kernel.py"
    index = [each for each in of(found, kernel, "TABLES", "unique") if each.now == "nothing"]
    assert any(b"CREATE INDEX attempts_promise" in each.changes[0][2] for each in index)
    table = "publisher/engine/transitions.py"
    rows = len(of(found, table, "TABLE", "row"))
    assert len(of(found, table, "TABLE", "added")) >= 9 * 27 - rows


def test_every_mutant_is_python_and_differs() -> None:
    found = mutants()
    assert len({each.id for each in found}) == len(found)
    texts = {path: (ROOT / path).read_bytes() for path in {each.path for each in found}}
    for each in found:
        mutated = each.applied(texts[each.path])
        assert mutated != texts[each.path]
        ast.parse(mutated)
