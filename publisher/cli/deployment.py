"""``publisher deployment``: which one this database is, and making a copy one of its own."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from publisher import witness
from publisher.cli import screen, session
from publisher.db.roles import Role
from publisher.editorial import deployment
from publisher.editorial.deployment import KeyStanding, Rebound, Standing
from publisher.editorial.witnessed import Beside, Says, give_to_witness, witness_to_take
from publisher.vault import Vault
from publisher.words import _, many

app = typer.Typer(no_args_is_help=True)


@app.command(help=_("Say which deployment this database is, and how key and witness stand."))
def show(
    *, json: Annotated[bool, typer.Option("--json", help=_("One JSON object."))] = False
) -> None:
    """Exit 0 however they stand."""
    settings = session.settings()
    store = witness.store(settings)
    with session.database() as database, database.engine.begin() as conn:
        standing = Standing.read(conn, settings)
        beside = Beside.read(conn, store, step=settings.witness_step)
    if json:
        screen.emit([_as_json(standing, beside, store.name)])
        return
    stands = beside.stands
    rows = [
        (_("Deployment"), stands.deployment),
        (_("Generation"), str(stands.generation)),
        (_("Key"), f"{_key_words(standing.key)} ({standing.where})"),
        (_("Cluster"), _("{system}, timeline {n}").format(system=stands.system, n=stands.timeline)),
        (_("Witness"), f"{store.name}: {_witness_words(beside)}"),
    ]
    widest = max(len(name) for name, _value in rows)
    screen.say(*(f"{name:<{widest}}  {value}" for name, value in rows))
    if standing.key.is_a_copy:
        screen.say(_("It sends nothing: it is a copy that came without its key."))
        screen.say_next("publisher deployment rebind")
    else:
        screen.say_next("publisher doctor")


@app.command(
    help=_(
        "Make this database a deployment of its own: after a deliberate move or copy, or when the"
        " key is lost for good. What was due is looked for on its page before it is sent."
    )
)
def rebind(
    *,
    confirm: Annotated[
        str,
        typer.Option(
            metavar="DEPLOYMENT_ID",
            help=_("Its id, as `deployment show` says; else it is asked for."),
            show_default=False,
        ),
    ] = "",
    with_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=_("Seal with the key in this file, made when it is missing."),
            show_default=False,
        ),
    ] = None,
    take_witness: Annotated[
        bool,
        typer.Option(
            "--take-witness",
            help=_("Write over a witness of another deployment; only when that one is over."),
        ),
    ] = False,
    by: Annotated[
        str, typer.Option(metavar="NAME", help=_("Who does it."), show_default=False)
    ] = "",
) -> None:
    """Exit 4 while workers run, 2 when it is not confirmed; nothing is changed then."""
    settings = session.settings()
    store = witness.store(settings)
    with session.database(Role.OWNER) as database:
        with database.engine.begin() as conn:
            standing = Standing.read(conn, settings)
        takes = witness_to_take(store, take=take_witness)
        screen.note(
            _("This database is deployment {id}.").format(id=standing.identity.id),
            _("If another copy of it still runs, each may send what the other sent."),
        )
        if not confirm and sys.stdin.isatty():
            confirm = typer.prompt(_("Type its id"), default="", show_default=False)

        def key() -> Vault:
            if with_key is not None:
                return Vault.from_file(with_key, standing.identity.id)
            return standing.vault or Vault.from_settings(settings, standing.identity.id)

        with database.engine.begin() as conn:
            rebound = deployment.rebind(
                conn,
                standing,
                key,
                confirm=confirm,
                who=by or session.who(),
                silent_for=timedelta(seconds=settings.lease_seconds),
                absent_after=settings.publish_lease + settings.horizon,
            )
        if takes:
            with database.engine.connect() as conn:
                give_to_witness(conn, store, step=settings.witness_step)
    _tell(rebound, with_key)


def _tell(rebound: Rebound, with_key: Path | None) -> None:
    screen.say(
        _("It is deployment {id} now, generation {n}.").format(
            id=rebound.id, n=rebound.generation
        ),
        many(
            "{n} credential was sealed again.", "{n} credentials were sealed again.",
            rebound.resealed,
        ),
    )  # fmt: skip
    if with_key is not None:
        screen.say(_("Set PUBLISHER_VAULT_KEY_FILE={file} from now on.").format(file=with_key))
    if rebound.quarantined:
        screen.say(
            many(
                "{n} post is looked for on its page before it is sent.",
                "{n} posts are looked for on their pages before they are sent.",
                rebound.quarantined,
            )
        )
    if rebound.dropped:
        screen.say(
            many(
                "{n} channel must be reconnected: its credential cannot be opened.",
                "{n} channels must be reconnected: their credentials cannot be opened.",
                len(rebound.dropped),
            )
        )
        screen.say_next(f"publisher channels reconnect {rebound.dropped[0]}")
    else:
        screen.say_next("publisher worker", "publisher quarantine status")


def _key_words(key: KeyStanding) -> str:
    return {
        KeyStanding.UNUSED: _("nothing is sealed yet"),
        KeyStanding.MATCHES: _("present, and this deployment's"),
        KeyStanding.MISSING: _("missing"),
        KeyStanding.ANOTHER: _("present, and not this deployment's"),
    }[key]


def _witness_words(beside: Beside) -> str:
    record = beside.record
    if record is not None and beside.says is Says.ANOTHER:
        return _("speaks of deployment {id}").format(id=record.deployment)
    if record is not None and beside.says is Says.DISAGREES:
        return _("written {at}, disagrees: {cause}").format(at=record.at, cause=beside.cause)
    if record is not None:
        return _("written {at}, agrees").format(at=record.at)
    return {
        Says.UNREADABLE: _("damaged"),
        Says.UNREACHABLE: _("out of reach"),
    }.get(beside.says, _("nothing written yet"))


def _as_json(standing: Standing, beside: Beside, name: str) -> dict[str, object]:
    stands, record = beside.stands, beside.record
    return {
        "deployment": stands.deployment,
        "generation": stands.generation,
        "key": standing.key,
        "key_place": standing.where,
        "system": stands.system,
        "timeline": stands.timeline,
        "tick": stands.tick,
        "witness": name,
        "witness_says": beside.says,
        "witness_cause": beside.cause,
        "witness_tick": None if record is None else record.tick,
        "witness_at": None if record is None else record.at,
    }
