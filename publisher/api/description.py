"""The description of the API, OpenAPI 3.1: what docs/openapi.json holds.

``python -m publisher.api.description`` writes it to standard output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from publisher.api.application import describe


def document() -> dict[str, Any]:
    """The document as it is served."""
    return describe().openapi()


def text() -> str:
    """As it is kept in the repository."""
    return json.dumps(document(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def series(version: str) -> tuple[str, ...]:
    """Versions with equal ones only add to one another: the first number, or 0 and the second."""
    first, second = version.split(".")[:2]
    return (first, second) if first == "0" else (first,)


def breaks(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """What a client of ``before`` loses with ``after``: each as a sentence's beginning.

    An operation, an answer's status, a field or a value of an answer that is gone; a parameter, a
    body or a field of a body that is needed and was not; a value or a field that is not taken any
    more.
    """
    for path, operations in before["paths"].items():
        for method, old in operations.items():
            new = after["paths"].get(path, {}).get(method)
            name = f"{method.upper()} {path}"
            if new is None:
                yield f"{name} is gone"
                continue
            yield from _of_operation(name, old, new, before, after)


def _of_operation(
    name: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> Iterator[str]:
    yield from (
        f"{name}: status {status} is gone"
        for status in old["responses"]
        if status.startswith("2") and status not in new["responses"]
    )
    known = {(one["in"], one["name"]): one for one in old.get("parameters", [])}
    taken = {(one["in"], one["name"]): one for one in new.get("parameters", [])}
    yield from (f"{name}: parameter {at[1]} is gone" for at in known if at not in taken)
    for at, one in taken.items():
        if one.get("required") and not known.get(at, {}).get("required"):
            yield f"{name}: parameter {at[1]} is needed now"
    yield from (
        f"{name}: parameter {at[1]} no longer takes {gone}"
        for at in known
        if at in taken
        for gone in _values(known[at]["schema"], before) - _values(taken[at]["schema"], after)
    )
    was, now = _body(old), _body(new)
    if now is not None:
        if new["requestBody"].get("required") and not old.get("requestBody", {}).get("required"):
            yield f"{name}: a body is needed now"
        yield from _narrowed(f"{name}: the body", was or {}, now, before, after)
    for status, answer in old["responses"].items():
        there = new["responses"].get(status)
        if status.startswith("2") and there is not None:
            yield from _lost(f"{name}: the answer", _schema(answer), _schema(there), before, after)


def _body(operation: Mapping[str, Any]) -> Mapping[str, Any] | None:
    content = operation.get("requestBody", {}).get("content", {})
    found: Mapping[str, Any] | None = content.get("application/json", {}).get("schema")
    return found


def _schema(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    content = answer.get("content", {})
    found: Mapping[str, Any] = content.get("application/json", {}).get("schema", {})
    return found


def _lost(
    where: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    seen: frozenset[str] = frozenset(),
) -> Iterator[str]:
    """Fields that an answer had, and has no more."""
    for name, old_part in _fields(old, before).items():
        new_part = _fields(new, after).get(name)
        if new_part is None:
            yield f"{where} has no {name} any more"
        elif str(old_part) not in seen:
            more = seen | {str(old_part)}
            yield from _lost(f"{where}.{name}", old_part, new_part, before, after, more)


def _narrowed(
    where: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> Iterator[str]:
    """What a body could hold and cannot, or need not and must."""
    had, has = _fields(old, before), _fields(new, after)
    yield from (f"{where} takes no {name} any more" for name in had if name not in has)
    needed = set(_resolved(new, after).get("required", ()))
    was_needed = set(_resolved(old, before).get("required", ()))
    yield from (f"{where} needs {name} now" for name in sorted(needed - was_needed))
    yield from (
        f"{where}.{name} no longer takes {gone}"
        for name in had
        if name in has
        for gone in _values(had[name], before) - _values(has[name], after)
    )


def _fields(schema: Mapping[str, Any], of: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    found = _resolved(schema, of)
    if "items" in found:
        return _fields(found["items"], of)
    if "anyOf" in found:
        return {name: part for one in found["anyOf"] for name, part in _fields(one, of).items()}
    return dict(found.get("properties", {}))


def _values(schema: Mapping[str, Any], of: Mapping[str, Any]) -> set[str]:
    """Every value of an enumeration, and every type, that a part may be."""
    found = _resolved(schema, of)
    if "anyOf" in found:
        return {value for one in found["anyOf"] for value in _values(one, of)}
    if "items" in found:
        return _values(found["items"], of)
    return {str(value) for value in found.get("enum", [found.get("type", "")])}


def _resolved(schema: Mapping[str, Any], of: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        schema = of["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


if __name__ == "__main__":
    sys.stdout.write(text())
