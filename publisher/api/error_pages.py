"""Pages that the ``type`` of a problem leads to: what the code means and what to do."""

from __future__ import annotations

from html import escape
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import HTMLResponse

from publisher.api.catalogue import ENTRIES
from publisher.api.catalogue_entry import Entry
from publisher.api.problems import Problem, Refusal
from publisher.words import _, language

router = APIRouter(tags=["errors"], include_in_schema=False)


@router.get("/errors", response_class=HTMLResponse)
def list_errors() -> HTMLResponse:
    """Every code there is."""
    lines = [
        f'<li><a href="errors/{code}"><code>{code}</code></a> {one.status}: {escape(_(one.title))}'
        for code, one in sorted(ENTRIES.items())
    ]
    return _page(_("Errors of the API"), f"<ul>{''.join(lines)}</ul>")


@router.get("/errors/{code}", response_class=HTMLResponse)
def show_error(code: Annotated[str, Path(max_length=60)]) -> HTMLResponse:
    """One code."""
    known = ENTRIES.get(code)
    if known is None:
        raise Refusal(Problem.of("not-found", _("There is no page about that code.")))
    return _page(_(known.title), _about(code, known))


def _about(code: str, known: Entry) -> str:
    rows = [
        (_("Code"), code),
        (_("Status"), str(known.status)),
        (_("What to do"), _(known.next)),
    ]
    told = "".join(f"<dt>{escape(label)}<dd>{escape(text)}" for label, text in rows)
    return f"<dl>{told}</dl>"


def _page(title: str, body: str) -> HTMLResponse:
    return HTMLResponse(
        f'<!doctype html><html lang="{escape(language())}"><meta charset="utf-8">'
        f"<title>{escape(title)}</title><h1>{escape(title)}</h1>{body}</html>"
    )
