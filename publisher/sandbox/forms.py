"""Parameters of a call: query, urlencoded form, JSON or multipart, byte for byte."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from publisher.sandbox.wire import Head

_INDEXED = re.compile(r"^(\w+)\[(\d+)\]$")
_NAME = re.compile(r'\bname="((?:[^"\\]|\\.)*)"')
_FILE_NAME = re.compile(r'\bfilename="((?:[^"\\]|\\.)*)"')
_BOUNDARY = re.compile(r'boundary=(?:"([^"]+)"|([^;\s]+))')


class UnreadableForm(Exception):
    """The parameters cannot be read."""


@dataclass(frozen=True, slots=True)
class Form:
    """The parameters of one call; a later one of the same name wins, body over query."""

    params: dict[str, Any]
    """Strings, and from a JSON body whatever it held."""
    files: dict[str, bytes]
    repeated: dict[str, list[str]] = field(default_factory=dict)
    """``name[]=…``, as often as it came, by the name without brackets; not from a JSON body."""

    def text(self, name: str) -> str:
        """Return a parameter as text, empty when it is not there."""
        value = self.params.get(name)
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a parameter that is true or false, as Graph reads one."""
        text = self.text(name).lower()
        return default if not text else text not in ("false", "0", "no")

    def items(self, name: str) -> list[Any]:
        """Return a list: ``name[0]=…``, ``name=[…]`` or a JSON list; items may be JSON text.

        Raises ``UnreadableForm`` when it is no list.
        """
        indexed = sorted(
            (int(match[2]), value)
            for key, value in self.params.items()
            if (match := _INDEXED.match(key)) and match[1] == name
        )
        whole = [value for _, value in indexed] or self.params.get(name) or []
        if isinstance(whole, str):
            whole = _json(whole)
        if not isinstance(whole, list):
            reason = f"{name} must be an array."
            raise UnreadableForm(reason)
        return [_json(item) if isinstance(item, str) else item for item in whole]


def read(head: Head, body: bytes) -> Form:
    """Read the parameters of a call. Raises ``UnreadableForm``."""
    try:
        pairs = _pairs(head.query)
        params: dict[str, Any] = dict(pairs)
        files: dict[str, bytes] = {}
        content_type = head.headers.get("content-type", "")
        if content_type.startswith("multipart/form-data"):
            fields, files = _multipart(content_type, body)
            pairs += fields
            params |= dict(fields)
        elif content_type.startswith("application/json"):
            data = json.loads(body) if body else {}
            if not isinstance(data, dict):
                reason = "The JSON body must be an object."
                raise UnreadableForm(reason)
            params |= data
        elif body:
            fields = _pairs(body.decode())
            pairs += fields
            params |= dict(fields)
        json.dumps(params, ensure_ascii=False).encode()  # lone surrogates are no text
    except ValueError as error:
        reason = f"The parameters cannot be read: {error}."
        raise UnreadableForm(reason) from None
    repeated: dict[str, list[str]] = {}
    for name, value in pairs:
        if name.endswith("[]"):
            repeated.setdefault(name.removesuffix("[]"), []).append(value)
    return Form(params, files, repeated)


def _pairs(text: str) -> list[tuple[str, str]]:
    return parse_qsl(text, keep_blank_values=True, errors="strict")


def _json(text: str) -> Any:  # noqa: ANN401
    try:
        return json.loads(text)
    except ValueError:
        reason = f"{text!r} is not JSON."
        raise UnreadableForm(reason) from None


def _multipart(content_type: str, body: bytes) -> tuple[list[tuple[str, str]], dict[str, bytes]]:
    found = _BOUNDARY.search(content_type)
    if found is None:
        reason = "The multipart body names no boundary."
        raise UnreadableForm(reason)
    fields: list[tuple[str, str]] = []
    files: dict[str, bytes] = {}
    mark = b"\r\n--" + (found[1] or found[2]).encode()
    # The first boundary has no line before it; with one added, all are alike.
    for part in (b"\r\n" + body).split(mark)[1:]:
        if part.startswith(b"--"):
            break
        head, separator, content = part.partition(b"\r\n\r\n")
        name = _NAME.search(head.decode())
        if not separator or name is None:
            reason = "A part of the multipart body has no name."
            raise UnreadableForm(reason)
        if _FILE_NAME.search(head.decode()):
            files[name[1]] = content
        else:
            fields.append((name[1], content.decode()))
    return fields, files
