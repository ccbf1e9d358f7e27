"""The embedded server's process: started, recognised, waited for, stopped.

``postmaster.pid`` names a process that may be long gone, with its number given to another. So the
server inherits a lock (``server.lock``) that lasts exactly as long as its last process does:
whoever can take that lock knows that none is left.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import Final

from publisher.db.cluster import SOCKET_NAME, Cluster, server_environment
from publisher.db.errors import StartFailedError
from publisher.db.locks import FileLock

_STOP_SECONDS: Final = 60.0
_QUIT_SECONDS: Final = 15.0
_SAFETY: Final = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
}
"""Given on the command line, where neither ``postgresql.conf`` nor ALTER SYSTEM can undo it."""

_NOTICE_SECONDS: Final = 5.0
"""What the sessions of a killed server need to notice and end."""

_children: dict[Path, subprocess.Popen[bytes]] = {}
"""Servers this process started, by data directory, kept so that one that ended is reaped."""


def start(cluster: Cluster, binaries: Path, server_lock: FileLock) -> None:
    """Start the server and return at once; the caller holds ``server_lock``, and so will it.

    A session of its own keeps the terminal's Ctrl-C from ending it before its users.
    Raises ``OSError`` or ``StartFailedError``.
    """
    socket_folder = cluster.socket_folder()
    _remove_stale(cluster, socket_folder)
    settings = _SAFETY | {"unix_socket_directories": _listed(socket_folder)}
    argv = [
        str(binaries / "postgres"),
        *("-D", str(cluster.data)),
        *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
    ]
    needed = (binaries / "postgres", cluster.data, socket_folder)
    launch = cluster.account.launch(argv, needed)
    log = os.open(cluster.start_log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        _children[cluster.data] = subprocess.Popen(  # noqa: S603 - a program of the wheel
            launch.argv,
            user=launch.user,
            group=launch.group,
            extra_groups=launch.extra_groups,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=server_environment(),
            umask=0o077,
            pass_fds=(server_lock.fileno(),),
            start_new_session=True,
        )
    finally:
        os.close(log)


def listening_in(cluster: Cluster) -> Path | None:
    """Return the folder of the server's socket, by its own word; None until it takes sessions.

    Asked, not computed: another process may have started it with another temporary directory.
    """
    match _pid_file(cluster):
        case [_, _, _, _, folder, _, _, "ready", *_]:
            return Path(folder)
        case _:
            return None


def stop(cluster: Cluster, server_lock: FileLock) -> bool:
    """Stop the server (fast: sessions are ended, what was committed stays) and wait for its end.

    Tells whether it ran. Returns holding ``server_lock``. Raises ``StartFailedError`` when the
    process cannot be told or does not end.
    """
    if server_lock.try_exclusive():
        return False
    pid = _pid_of_server(cluster)
    if pid is None:
        if not server_lock.exclusive_within(_NOTICE_SECONDS):
            # Two containers can share a home: the lock is seen through, the process is not.
            message = (
                f"The embedded PostgreSQL under {cluster.home} runs on: its process is not visible"
                " from here. It ends with the container that started it."
            )
            raise StartFailedError(message)
    else:
        _end(pid, cluster, server_lock)
    child = _children.pop(cluster.data, None)
    if child is not None:
        child.wait()  # its files are closed: what is left takes no time
    return True


def reap() -> None:
    """Collect the exit status of servers this process started and others stopped."""
    for data, child in tuple(_children.items()):
        if child.poll() is not None:
            _children.pop(data, None)


def disown() -> None:
    """Leave the servers to others: to our parent if we are its fork, to the system if we exit."""
    for child in _children.values():
        child.returncode = 0
    _children.clear()


def _end(pid: int, cluster: Cluster, server_lock: FileLock) -> None:
    """Ask for a fast shutdown, then for an immediate one, after which the log is replayed."""
    for signal_number, seconds in ((signal.SIGINT, _STOP_SECONDS), (signal.SIGQUIT, _QUIT_SECONDS)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal_number)
        if server_lock.exclusive_within(seconds):
            return
    message = f"The embedded PostgreSQL under {cluster.home} (process {pid}) does not stop."
    raise StartFailedError(message)


def _remove_stale(cluster: Cluster, socket_folder: Path) -> None:
    """Remove what a killed server left; we hold its lock, so none of its processes is alive.

    PostgreSQL removes these itself unless the pid in them now belongs to another process of the
    same user, which is usual after a reboot and in containers.
    """
    pid = _pid_in_file(cluster)
    if pid is not None:
        message = (
            f"A PostgreSQL that we did not start (process {pid}) already runs on {cluster.data}."
            " Stop it first."
        )
        raise StartFailedError(message)
    (cluster.data / "postmaster.pid").unlink(missing_ok=True)
    for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
        (socket_folder / name).unlink(missing_ok=True)


def _pid_of_server(cluster: Cluster) -> int | None:
    """Return the running server's process; None when it is gone or not to be seen."""
    child = _children.get(cluster.data)
    if child is not None and child.poll() is None:
        return child.pid
    return _pid_in_file(cluster)


def _pid_in_file(cluster: Cluster) -> int | None:
    """Return the process in ``postmaster.pid`` if it is a PostgreSQL on our data directory."""
    try:
        pid = abs(int(_pid_file(cluster)[0]))
    except (IndexError, ValueError):
        return None
    return pid if str(cluster.data) in _command_line(pid) else None


def _command_line(pid: int) -> list[str]:
    """Return the arguments of a process; empty when it is gone, a zombie or not to be seen."""
    if Path("/proc/self").exists():
        try:
            raw = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return []
        return [os.fsdecode(part) for part in raw.split(b"\0")]
    listed = subprocess.run(  # noqa: S603
        ["/bin/ps", "-ww", "-o", "args=", "-p", str(pid)],
        check=False,
        capture_output=True,
        text=True,
    )
    _, _, rest = listed.stdout.partition(" -D ")
    return [rest.partition(" -c ")[0]]


def _pid_file(cluster: Cluster) -> list[str]:
    """Return the lines of ``postmaster.pid``: pid, data, start, port, socket, …, status."""
    try:
        text = (cluster.data / "postmaster.pid").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [line.strip() for line in text.splitlines()]


def _listed(folder: Path) -> str:
    """Quote a folder for ``unix_socket_directories``, which is a comma-separated list."""
    doubled = str(folder).replace('"', '""')
    return f'"{doubled}"'


os.register_at_fork(after_in_child=disown)
atexit.register(disown)
