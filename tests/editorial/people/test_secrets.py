"""Nothing secret is in what is written: every column of every table, every line of the log."""

from __future__ import annotations

import io

import pyotp
import structlog
from sqlalchemy import text

from publisher import telemetry
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.editorial.people import sign_in, tokens, totp
from publisher.editorial.people.roles import Permission, Role
from tests.editorial.people.conftest import OTHER, PASSWORD, Town

ANN = "ann@example.org"


def everything(owner: Database) -> str:
    """Every row of every table of ours as text, bytes as hexadecimal."""
    with owner.engine.begin() as conn:
        names = conn.execute(
            text("SELECT tablename FROM pg_tables WHERE schemaname = 'publisher' ORDER BY 1")
        ).scalars()
        rows = [
            row
            for name in names.all()
            for row in conn.execute(text(f"SELECT t::text FROM publisher.{name} t")).scalars()
        ]
    return "\n".join(rows)


def test_no_secret_is_in_the_database_or_the_log(
    town: Town, owner_database: Database, settings: Settings
) -> None:
    log = io.StringIO()
    telemetry.configure(settings.model_copy(update={"log_level": "debug"}), stream=log)
    try:
        invitation = town.invite(ANN, Role.ADMIN)
        begun = sign_in.by_link(town.engine, token=invitation, password=PASSWORD)
        with town.engine.begin() as conn:
            offered = totp.offer(conn, town.vault, begun.session.user_id)
            made = tokens.make(
                conn,
                town.person(ANN),
                name="CI",
                scopes=[*Permission],
                lasts=None,
                who="Ann",
            )
            assert tokens.find(conn, made.secret) is not None
        code = pyotp.TOTP(offered.secret).now()
        codes = sign_in.confirm_totp(town.engine, town.vault, begun.session, code=code)
        reset = town.link(ANN)
        half = sign_in.by_link(town.engine, token=reset, password=OTHER)
        whole = sign_in.with_code(
            town.engine, town.vault, token=half.token, code=codes[0], agent="Browser"
        )
        for _ in range(6):
            try:
                town.sign_in(ANN, "a wrong guess", address="192.0.2.1")
            except (sign_in.SignInRefused, sign_in.throttle.Throttled):
                continue
        structlog.get_logger().error("a.slip", said=f"{made.secret} {whole.token} {reset}")
    finally:
        structlog.reset_defaults()
    secrets = {
        "invitation": invitation,
        "reset": reset,
        "session": begun.token,
        "half session": half.token,
        "whole session": whole.token,
        "API token": made.secret,
        "TOTP secret": offered.secret,
        "password": PASSWORD,
        "other password": OTHER,
        "guess": "a wrong guess",
        **{f"recovery code {n}": one for n, one in enumerate(codes)},
    }
    written = {"database": everything(owner_database), "log": log.getvalue()}
    assert "signed_in" in written["database"]
    assert "a.slip" in written["log"]
    found = [
        (name, where)
        for name, secret in secrets.items()
        for where, what in written.items()
        for form in (secret, secret.rpartition("_")[2], secret.replace("-", ""),
                     secret.encode().hex())
        if form in what
    ]  # fmt: skip
    assert not found
