"""The tables: medians with their range, ratios of ours to each peer, budgets met or missed."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Sequence
from statistics import median

from bench.contestants import Contestant
from bench.results import Results, Row
from bench.server import Server

_NOISY = 0.2


def conditions(server: Server, rounds: int) -> str:
    """Where and how this was measured."""
    with server.connect() as conn:
        version = conn.info.parameter_status("server_version")
    return (
        f"{time.strftime('%-d %b %Y')}, {os.cpu_count()} cores, Python {platform.python_version()},"
        f" PostgreSQL {version} on loopback; fsync, synchronous_commit and full_page_writes on,"
        f" a synced write of 8 kB takes {server.sync_microseconds()} µs. Server, workers and"
        " whoever adds the jobs share the cores."
        f" {rounds} interleaved rounds: median [least–most]. Foreign:"
        f" cores that other programs kept busy meanwhile; distrust a row above {_NOISY}."
    )


def document(results: Results, conditions: str, entrants: Sequence[Contestant]) -> str:
    """Everything, as Markdown."""
    parts = ["# What the bench measured", conditions, _verdicts(results), _drain(results)]
    parts += [_pickup(results), _sends(results), _fairness(results), _history(results)]
    parts.append(_contestants(entrants))
    if results.failures:
        parts.append("## Failed\n\n" + "\n".join(f"- {line}" for line in results.failures))
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(row) for row in rows]
    return f"## {title}\n\n" + "\n".join(f"| {line} |" for line in lines)


def _spread(rows: Sequence[Row], key: str, form: str = ",.0f") -> str:
    values = sorted(row[key] for row in rows)
    if len(values) == 1:
        return format(values[0], form)
    return f"{median(values):{form}} [{values[0]:{form}}–{values[-1]:{form}}]"


def _ratios(results: Results, measure: str, key: str, name: str, ours: str = "ours") -> list[float]:
    """Ours to theirs in each round: the two of one round share its noise."""
    rounds = {row["round"]: row[key] for row in results.of(measure, ours)}
    return [
        rounds[row["round"]] / row[key]
        for row in results.of(measure, name)
        if row["round"] in rounds and row[key]
    ]


def _ratio(results: Results, measure: str, key: str, name: str, ours: str = "ours") -> float | None:
    ratios = _ratios(results, measure, key, name, ours)
    return median(ratios) if ratios else None


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f} ×"


def _verdicts(results: Results) -> str:
    """Each budget with what was measured; unclear where the rounds do not agree."""
    rows: list[tuple[str, str, str, str]] = []

    def judge(what: str, values: list[float], limit: float, unit: str, *, least: bool) -> None:
        if not values:
            return
        held = [value >= limit if least else value <= limit for value in values]
        bound = f"{'≥' if least else '≤'} {limit:g} {unit}"
        verdict = "met" if all(held) else "unclear" if any(held) else "**missed**"
        spread = f"{median(values):,.2f} [{min(values):,.2f}–{max(values):,.2f}] {unit}"
        rows.append((what, bound, f"{spread}, {len(values)} rounds", verdict))

    def each(measure: str, name: str, key: str) -> list[float]:
        return [row[key] for row in results.of(measure, name)]

    for peer, limit in (("PgQueuer", 0.7), ("Procrastinate", 20.0)):
        values = _ratios(results, "drain 1", "rate", peer)
        judge(f"drain, one process, to {peer}", values, limit, "×", least=True)
    judge("pickup p50, to the best Python peer", _best_pickup(results), 1.5, "×", least=False)
    values = each("publishes", "1 process", "rate")
    judge("real publishes, one process", values, 250, "a second", least=True)
    values = [worst / 1000 for worst in each("fairness", "ours", "worst")]
    judge("one due beside a crowd", values, 2, "s", least=False)
    names = results.names("history drain")
    if len(names) > 1:
        values = _ratios(results, "history drain", "rate", names[0], names[1])
        judge(f"drain with {names[1]}, to none", values, 0.9, "×", least=True)
    values = each("drain 1", "ours", "memory")
    judge("memory, 256 hands, no-op", values, 150, "MB", least=False)
    values = each("publishes", "1 process", "memory")
    judge("memory, 256 hands, real sends", values, 150, "MB", least=False)
    return _table("Budgets", ("what", "budget", "measured", ""), rows) if rows else ""


def _best_pickup(results: Results) -> list[float]:
    """Ours to whichever Python peer was quickest, round by round."""
    peers = [
        {row["round"]: row["p50"] for row in results.of("pickup", peer)}
        for peer in ("PgQueuer", "Procrastinate")
    ]
    return [
        row["p50"] / min(best)
        for row in results.of("pickup", "ours")
        if (best := [peer[row["round"]] for peer in peers if row["round"] in peer])
    ]


def _drain(results: Results) -> str:
    parts = []
    for processes in (1, 2):
        measure = f"drain {processes}"
        rows = [
            (
                name,
                f"{of[0]['jobs']:,.0f}",
                _spread(of, "rate"),
                "" if name == "ours" else _times(_ratio(results, measure, "rate", name)),
                _spread(of, "worker_cpu", ".3f"),
                _spread(of, "server_cpu", ".3f"),
                _spread(of, "transactions", ".3f"),
                _spread(of, "wal"),
                _spread(of, "memory"),
                _spread(of, "foreign", ".2f"),
            )
            for name in results.names(measure)
            if (of := results.of(measure, name))
        ]
        if rows:
            head = (
                "", "jobs", "jobs/s", "ours to it", "worker CPU s/1000", "server CPU s/1000",
                "tx/job", "WAL B/job", "peak MB", "foreign",
            )  # fmt: skip
            many = f"{processes} process{'es' * (processes > 1)}"
            parts.append(_table(f"Drain of no-op jobs, {many}", head, rows))
    return "\n\n".join(parts)


def _pickup(results: Results) -> str:
    rows = [
        (
            name,
            _spread(of, "p50", ".2f"),
            _spread(of, "p99", ".1f"),
            _spread(of, "max", ".1f"),
            "" if name == "ours" else _times(_ratio(results, "pickup", "p50", name)),
            _spread(of, "worker_cpu", ".2f"),
            _spread(of, "server_cpu", ".2f"),
            _spread(of, "foreign", ".2f"),
        )
        for name in results.names("pickup")
        if (of := results.of("pickup", name))
    ]
    head = (
        "", "p50 ms", "p99 ms", "most ms", "ours to it, p50", "worker CPU s/1000",
        "server CPU s/1000", "foreign",
    )  # fmt: skip
    title = "Pickup from an idle queue, from the commit of the enqueue to the handler"
    return _table(title, head, rows) if rows else ""


def _sends(results: Results) -> str:
    named = {
        "lateness": "pages answer in 200 ms",
        "publishes": "pages answer at once",
    }
    rows = [
        (
            f"{name}, {how}",
            f"{of[0]['posts']:,.0f}",
            _spread(of, "p50", ".1f"),
            _spread(of, "p99", ".1f"),
            _spread(of, "max", ".1f"),
            _spread(of, "rate"),
            _spread(of, "worker_cpu", ".2f"),
            _spread(of, "server_cpu", ".2f"),
            _spread(of, "memory"),
            _spread(of, "foreign", ".2f"),
        )
        for measure, how in named.items()
        for name in results.names(measure)
        if (of := results.of(measure, name))
    ]
    head = (
        "", "posts", "late p50 s", "p99 s", "most s", "posts/s", "worker CPU s/1000",
        "server CPU s/1000", "peak MB", "foreign",
    )  # fmt: skip
    title = "Real sends over 500 sandbox pages, all due at one instant (late: until settled)"
    return _table(title, head, rows) if rows else ""


def _fairness(results: Results) -> str:
    rows = [
        (
            f"{of[0]['crowd']:,.0f}",
            _spread(of, "best"),
            _spread(of, "worst"),
            _spread(of, "left"),
            _spread(of, "foreign", ".2f"),
        )
        for name in results.names("fairness")
        if (of := results.of("fairness", name))
    ]
    head = ("waiting on one channel", "best ms", "worst ms", "crowd left after", "foreign")
    title = "One due post on another channel, until published (five probes a round)"
    return _table(title, head, rows) if rows else ""


def _history(results: Results) -> str:
    names = results.names("history drain")
    rows = [
        (
            name,
            _spread(drain, "rate"),
            _times(_ratio(results, "history drain", "rate", names[0], name)),
            _spread(claim, "milliseconds", ".1f"),
            _times(_ratio(results, "history claim", "milliseconds", names[0], name)),
            _spread(drain, "foreign", ".2f"),
        )
        for name in names
        if (drain := results.of("history drain", name))
        and (claim := results.of("history claim", name))
    ]
    head = ("", "drain jobs/s", "to none", "claim of 500, ms", "to none", "foreign")
    return _table("Finished jobs in the table", head, rows) if rows else ""


def _contestants(entrants: Sequence[Contestant]) -> str:
    rows = [(each.name, each.setting, each.does) for each in entrants]
    return _table("Settings", ("", "setting", "what it writes for a job"), rows)
