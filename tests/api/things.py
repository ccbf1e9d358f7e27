"""One fresh thing of our workspace for each place in a path, and what every table holds."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from PIL import Image

from publisher.api import description
from publisher.editorial.people import sessions
from publisher.editorial.people.roles import Role
from publisher.editorial.people.sessions import Method
from publisher.engine.job import State, public_id
from tests.api.conftest import OURS, House

DOCUMENT: Final[Mapping[str, Any]] = description.document()
ABSENT: Final = {
    "job": "fffffffff7", "sha256": "0" * 64, "channel": 2**31 - 1, "user": 2**31 - 1,
    "post": 2**62, "session": 2**62, "token": 2**62, "run": 2**31 - 1,
}  # fmt: skip
"""What each place may hold and names nothing."""
SHARED: Final = {"run": "worker runs serve every workspace, and all of them list each"}


def example(method: str, path: str) -> Any:  # noqa: ANN401 - JSON
    """A body that the description gives; None where it has none."""
    body = DOCUMENT["paths"][path][method.lower()].get("requestBody", {})
    return body.get("content", {}).get("application/json", {}).get("example")


def parts(path: str) -> list[str]:
    """The places of a path, in order."""
    return re.findall(r"\{([a-z0-9_]+)\}", path)


def filled(path: str, values: Mapping[str, object]) -> str:
    """The path with these in its places."""
    return re.sub(r"\{([a-z0-9_]+)\}", lambda at: str(values[at[1]]), path)


def ours(house: House, path: str) -> dict[str, object]:
    """Fresh things of our workspace for the places of that path."""
    made: dict[str, object] = {}
    for name in parts(path):
        made[name] = MAKERS[name](house, path, made)
    return made


def owner(path: str) -> Role:
    """Whose things those are that ``/me`` is about."""
    return Role.EDITOR if "/me/" in path else Role.ADMIN


def invited(house: House) -> int:
    """A person of ours whom nobody needs."""
    name = house.key()
    body = {"email": f"{name}@main.example", "name": name, "role": "editor"}
    return int(house.done("POST", "/users", body)["user"]["id"])


def picture(colour: str = "red", size: tuple[int, int] = (4, 3), form: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, form)
    return file.getvalue()


def signed_in(house: House, user_id: int) -> int:
    """A session of theirs."""
    with house.ground.app.engine.begin() as conn:
        return sessions.begin(conn, user_id, Method.PASSWORD).session.id


def kept(house: House, workspace: str = OURS) -> str:
    """A picture that nobody has yet."""
    number = int(house.key().rpartition("-")[2])
    content = picture("white", (1 + number % 250, 1 + number // 250))
    headers = {"Content-Type": "application/octet-stream"}
    return str(
        house.call("POST", "/media", content=content, headers=headers, workspace=workspace).json()[
            "sha256"
        ]
    )


def _job(house: House, path: str, _made: object) -> str:
    state = State.UNKNOWN if "/unknowns/" in path else State.SCHEDULED
    return public_id(house.ours.put(state).id)


def _post(house: House, _path: str, _made: object) -> int:
    return int(house.done("POST", "/posts", {"text": "ours"})["id"])


def _user(house: House, _path: str, _made: object) -> int:
    return invited(house)


def _session(house: House, path: str, made: Mapping[str, Any]) -> int:
    return signed_in(house, made.get("user") or _id_of(house, owner(path)))


def _token(house: House, path: str, _made: object) -> int:
    house.token(owner(path))
    return int(house.ground.one("SELECT max(id) FROM api_tokens"))


def _id_of(house: House, role: Role) -> int:
    return int(house.ground.one("SELECT id FROM users WHERE email = %s", f"{role}@{OURS}.example"))


MAKERS: Final[Mapping[str, Callable[[House, str, Any], object]]] = {
    "job": _job,
    "channel": lambda house, _path, _made: house.ours.channel_id,
    "post": _post,
    "sha256": lambda house, _path, _made: kept(house),
    "user": _user,
    "session": _session,
    "token": _token,
}


def everything(house: House) -> dict[str, str]:
    """A digest of all rows of each table, without when a token was last used."""
    tables = house.ground.sql(
        "SELECT relname FROM pg_class WHERE relkind = 'r'"
        " AND relnamespace = 'publisher'::regnamespace"
    )
    digest = (
        "SELECT coalesce(md5(string_agg((to_jsonb(t) - 'last_used_at')::text, ' '"
        " ORDER BY (to_jsonb(t) - 'last_used_at')::text)), '') FROM publisher.{} t"
    )
    return {row["relname"]: house.ground.one(digest.format(row["relname"])) for row in tables}
