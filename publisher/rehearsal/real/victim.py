"""A worker that dies by SIGKILL in the middle of its first send: ``python -m …real.victim``.

It dies when the platform's answer is in its hands and nothing has been written down of it: the
post is on the page, and the journal can only doubt it.
"""

from __future__ import annotations

import os
import signal
import sys
from threading import Thread
from types import FrameType

from publisher import bootstrap, config, telemetry
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.engine.job import REHEARSAL
from publisher.engine.points import Point


def die(point: Point) -> None:
    """The probe of this worker."""
    if point is Point.AFTER_PUBLISH:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Be a worker of the rehearsal's queue until killed, or told to stop."""
    settings = config.load().model_copy(update={"queues": (REHEARSAL,)})
    telemetry.configure(settings)
    with (
        Database.open(settings, Role.ENGINE, application_name="rehearsal victim") as database,
        bootstrap.open_app(settings, database) as app,
    ):
        worker = bootstrap.worker(app)
        worker.probe = die

        def drain(_number: int, _frame: FrameType | None) -> None:
            worker.drain()

        def drain_with_parent() -> None:
            while os.read(0, 64):
                pass
            worker.drain()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, drain)
        Thread(target=drain_with_parent, daemon=True).start()
        code = worker.run()
    sys.exit(code)


if __name__ == "__main__":
    main()
