"""``publisher rehearse``: acceptance runs with injected crashes, and what came of them."""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Final, Self

import structlog
import typer
from pydantic import SecretStr

from publisher.cli import rehearse_page, screen
from publisher.rehearsal import conduct, isolation, replaying
from publisher.rehearsal.conduct import RESTORED, Wanted
from publisher.rehearsal.errors import SetUpError
from publisher.rehearsal.report import cumulative, folder, machine, terminal
from publisher.rehearsal.report.ticker import Ticker
from publisher.rehearsal.scenarios import ALONE, SCENARIOS
from publisher.rehearsal.stage.crew import LANES
from publisher.rehearsal.stage.given_server import GivenServer, left_behind
from publisher.rehearsal.stage.lane import Serve
from publisher.rehearsal.stage.own_server import OwnServer
from publisher.words import _

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=_(
        "Exit codes: 0 kept, 1 a promise broken or something left behind, 2 set-up,"
        " 3 proved too little."
    ),
)

_FOLDER: Final = Path("rehearsals")
_QUICK_SECONDS: Final = 320.0
"""For the schedules of the quick mode; what has begun by then ends."""
_FEW: Final = 2
"""Seeds of each scenario beside ``random``, in the quick mode."""
_RESTORES: Final = {True: 7, False: 21}
"""Plans of the scenario ``restored``: each way of losing the journal, once or three times."""
_ON_OUR_OWN: Final = _(
    "The scenario restored ran on a server of the rehearsal's own: the files of the one that was"
    " given are not ours to put back."
)
_SEEDS: Final = re.compile(r"(\d+)(?:\.\.(\d+))?")
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)([smh])")
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        help=_("Rehearse on this server, in databases made there and removed again."),
    ),
]
DirectUrl = Annotated[
    str | None,
    typer.Option("--direct-url", metavar="URL", help=_("The way past a pooler to it.")),
]
AppUrl = Annotated[
    str | None,
    typer.Option(
        "--app-url", metavar="URL", help=_("Where a pooler needs a login for each role: the app's.")
    ),
]
Programs = Annotated[
    Path | None,
    typer.Option(
        "--programs",
        metavar="FOLDER",
        exists=True,
        file_okay=False,
        help=_("Start the rehearsal's own server from PostgreSQL's programs there."),
    ),
]
Lanes = Annotated[int, typer.Option("--lanes", min=1, max=32, help=_("Schedules at a time."))]
Ledger = Annotated[
    Path | None,
    typer.Option("--ledger", metavar="FILE", help=_("Where runs are added up.")),
]
Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help=_("Where the reports are put."))]
Prove = Annotated[
    bool,
    typer.Option(
        "--prove", help=_("First see that it can fail: run broken variants of the engine.")
    ),
]
Json = Annotated[bool, typer.Option("--json", help=_("One JSON object, when it is over."))]
Seeds = Annotated[
    str | None, typer.Option("--seeds", metavar="A..B", help=_("From seed A to seed B."))
]
For = Annotated[
    str | None, typer.Option("--for", metavar="10m", help=_("Begin nothing new after that."))
]
More = Annotated[
    int | None,
    typer.Option("--more", min=1, metavar="N", help=_("So many seeds more than the ledger has.")),
]
Variant = Annotated[
    str | None,
    typer.Option(
        "--variant", metavar="NAME", help=_("Run a broken variant of the engine: it must fail.")
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help=_("A few minutes of it."))]


@app.callback(invoke_without_command=True)
def rehearse(  # noqa: PLR0913 - its options
    context: typer.Context,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help=_("Everything in the catalogue must be met."))
    ] = False,
    quick: Quick = False,
    prove: Prove = False,
    database_url: DatabaseUrl = None,
    direct_url: DirectUrl = None,
    app_url: AppUrl = None,
    programs: Programs = None,
    lanes: Lanes = LANES,
    ledger: Ledger = None,
    out: Out = _FOLDER,
    json: Json = False,
) -> None:
    """Run everything with ``--all``, or one scenario by its name."""
    if context.invoked_subcommand is not None:
        return
    if not everything:
        raise SetUpError(
            _("Say what to rehearse: --all, or a scenario. See publisher rehearse -h.")
        )
    runs = {"random": _first(SCENARIOS["random"].quick if quick else SCENARIOS["random"].full)}
    for name in ALONE:
        runs[name] = _first(_FEW if quick else SCENARIOS[name].full)
    runs[RESTORED] = _first(_RESTORES[quick])
    notes = () if database_url is None else (_ON_OUR_OWN,)
    where = _Where(database_url, direct_url, app_url, programs)
    _conduct(
        where, runs, is_whole=True, proves=prove, seconds=_QUICK_SECONDS if quick else 0.0,
        lanes=lanes, ledger=ledger, out=out, json=json, notes=notes,
    )  # fmt: skip


def _scenario(name: str) -> Callable[..., None]:
    def scenario(  # noqa: PLR0913 - "
        *,
        quick: Quick = False,
        seeds: Seeds = None,
        more: More = None,
        duration: For = None,
        variant: Variant = None,
        database_url: DatabaseUrl = None,
        direct_url: DirectUrl = None,
        app_url: AppUrl = None,
        programs: Programs = None,
        lanes: Lanes = LANES,
        ledger: Ledger = None,
        out: Out = _FOLDER,
        json: Json = False,
    ) -> None:
        where = _Where(database_url, direct_url, app_url, programs)
        seconds = 0.0 if duration is None else _seconds(duration)
        if seeds is None and (more or duration):
            first = cumulative.next_seed(_parts(ledger, out), scenario=name)
            # No schedule takes less than a second.
            wanted = range(first, first + (more or max(1, int(seconds))))
        else:
            wanted = _seeds(name, seeds, quick=quick)
        _conduct(
            where, {name: wanted}, is_whole=False, proves=False, seconds=seconds, lanes=lanes,
            ledger=ledger, out=out, json=json, variant=variant,
        )  # fmt: skip

    return scenario


for _name, _of in SCENARIOS.items():
    app.command(name=_name, help=_(_of.says))(_scenario(_name))
app.command(
    name=RESTORED,
    help=_("A backup is put back, a clone started, a standby promoted without the last commits."),
)(_scenario(RESTORED))


@app.command(help=_("Run one seed again, exactly, and show everything it said."))
def replay(
    seed: Annotated[int, typer.Argument(min=0, help=_("As a report names it."))],
    *,
    scenario: Annotated[
        str, typer.Option("--scenario", help=_("The scenario it is a seed of."))
    ] = "random",
    variant: Variant = None,
    database_url: DatabaseUrl = None,
    direct_url: DirectUrl = None,
    app_url: AppUrl = None,
    programs: Programs = None,
) -> None:
    """Exit 0 when every rule was kept, 1 when one was broken."""
    if scenario != RESTORED and scenario not in SCENARIOS:
        known = ", ".join((*SCENARIOS, RESTORED))
        message = _("There is no scenario {name}. Known are: {known}.")
        raise SetUpError(message.format(name=scenario, known=known))
    where = _Where(database_url, direct_url, app_url, programs)
    with _staged():
        again = replaying.replay(seed, scenario, variant, where.serve(), programs)
    screen.say(*again.said)
    if again.is_broken:
        raise typer.Exit(1)


app.command(
    name="smoke", help=_("A few marked posts on a real page that allows it, then taken down again.")
)(rehearse_page.smoke)


@app.command(help=_("Remove what rehearsals left behind that were killed."))
def clean(
    channel: Annotated[
        str | None,
        typer.Argument(help=_("A page's name or id; all pages, unless given."), show_default=False),
    ] = None,
    *,
    database_url: DatabaseUrl = None,
    direct_url: DirectUrl = None,
    json: Json = False,
) -> None:
    """Exit 1 when something stays. With ``--database-url``, databases on that server instead."""
    if database_url is None:
        rehearse_page.clean(channel, json=json)
        return
    if channel is not None:
        raise SetUpError(_("Give a page, or --database-url; not both."))
    direct = None if direct_url is None else SecretStr(direct_url)
    names = left_behind(SecretStr(database_url), direct)
    if json:
        screen.emit([{"dropped": names}])
        return
    screen.say(*(_("Dropped {name}").format(name=name) for name in names))
    if not names:
        screen.say(_("Nothing was left there."))


class _Where:
    """Which server it is to be."""

    def __init__(
        self, url: str | None, direct: str | None, app_url: str | None, programs: Path | None
    ) -> None:
        if url is not None and programs is not None:
            raise SetUpError(_("--programs is for a server of our own; leave out --database-url."))
        if (direct or app_url) and url is None:
            raise SetUpError(_("--direct-url and --app-url go with --database-url."))
        given = (url, direct, app_url)
        self._urls = [None if one is None else SecretStr(one) for one in given]
        self.programs = programs

    def serve(self) -> Serve:
        """How a lane gets its server."""
        url, direct, app_url = self._urls
        if url is None:
            return partial(OwnServer.running, self.programs)
        return partial(GivenServer.taken, url, direct, app_url)


def _conduct(  # noqa: PLR0913 - what they all share
    where: _Where,
    runs: dict[str, range],
    *,
    is_whole: bool,
    proves: bool,
    seconds: float,
    lanes: int,
    ledger: Path | None,
    out: Path,
    json: bool,
    variant: str | None = None,
    notes: tuple[str, ...] = (),
) -> None:
    wanted = Wanted(
        runs, is_whole=is_whole, proves=proves, seconds=seconds, lanes=lanes, serve=where.serve(),
        programs=where.programs, variant=variant, notes=notes,
        ledger=ledger or out / "ledger.jsonl",
    )  # fmt: skip
    number = folder.next_run(out)
    ticker = Ticker()
    with _staged():
        conductor = conduct.Conductor(wanted, number, ticker.say, ticker.watch)
        try:
            report = conductor.conduct()
        finally:
            ticker.close()
    files = folder.write(report, out / str(number))
    if json:
        screen.emit([machine.as_json(report)])
    else:
        screen.say(*terminal.lines(report, files=files))
    if report.exit_code:
        raise typer.Exit(report.exit_code)


class _staged(ExitStack):  # noqa: N801 - reads as a statement
    """Nothing of a deployment's comes in; what is told to stop ends in order, and once."""

    def __enter__(self) -> Self:
        isolation.isolate()
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
        for number in (signal.SIGTERM, signal.SIGINT):
            self.callback(signal.signal, number, signal.signal(number, _stop))
        return self


def _stop(_number: int, _frame: FrameType | None) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _first(count: int) -> range:
    return range(1, count + 1)


def _seeds(name: str, given: str | None, *, quick: bool) -> range:
    if given is None:
        if name == RESTORED:
            return _first(_RESTORES[quick])
        return _first(SCENARIOS[name].quick if quick else SCENARIOS[name].full)
    found = _SEEDS.fullmatch(given.strip())
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise SetUpError(_("--seeds takes 1..2000, or one seed, not {given}.").format(given=given))
    return range(int(found[1]), int(found[2] or found[1]) + 1)


def _seconds(given: str) -> float:
    found = _DURATION.fullmatch(given.strip())
    if found is None or float(found[1]) == 0:
        raise SetUpError(_("--for takes 90s, 10m or 2h, not {given}.").format(given=given))
    return float(found[1]) * _UNITS[found[2]]


def _parts(ledger: Path | None, out: Path) -> list[cumulative.Part]:
    return cumulative.read(ledger or out / "ledger.jsonl")
