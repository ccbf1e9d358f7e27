"""Lanes side by side: most of a schedule is waiting for leases and timeouts."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue

from publisher.rehearsal.plan.schedule import Schedule
from publisher.rehearsal.stage.lane import Lane, Serve
from publisher.rehearsal.stage.own_server import OwnServer
from publisher.rehearsal.stage.result import Result
from publisher.rehearsal.stage.run import run

LANES = int(os.environ.get("CRASH_LANES", "0")) or max(2, min(6, 2 * (os.cpu_count() or 1)))


def each(
    schedules: Iterable[Schedule],
    *,
    lanes: int = LANES,
    serve: Serve = OwnServer.running,
    goes_on: Callable[[], bool] = lambda: True,
) -> Iterator[Result]:
    """Run schedules on so many lanes; results come as they are ready.

    ``goes_on`` is asked before each one; what raises in a lane is raised here.
    """
    waiting: SimpleQueue[Schedule] = SimpleQueue()
    for schedule in schedules:
        waiting.put(schedule)
    done: SimpleQueue[Result | BaseException | None] = SimpleQueue()
    threads = [
        threading.Thread(target=_work, args=(serve, waiting, done, goes_on))
        for _ in range(min(lanes, waiting.qsize()))
    ]
    for thread in threads:
        thread.start()
    try:
        working = len(threads)
        while working:
            result = done.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                working -= 1
            else:
                yield result
    finally:
        while not waiting.empty():
            waiting.get_nowait()
        for thread in threads:
            thread.join()


def _work(
    serve: Serve,
    waiting: SimpleQueue[Schedule],
    done: SimpleQueue[Result | BaseException | None],
    goes_on: Callable[[], bool],
) -> None:
    try:
        with Lane.open(serve) as lane:
            while goes_on():
                done.put(run(lane, waiting.get_nowait()))
    except Empty:
        pass
    except BaseException as error:  # noqa: BLE001 - told to who asked
        done.put(error)
    done.put(None)
