"""Acceptance runs: crash it on purpose, then compare the page with the journal.

``plan`` says what is done, ``relays`` stand in the ways to database and platform, ``cast`` is who
acts in forked processes, ``stage`` where it happens and who directs, ``verdict`` what must hold
afterwards, ``restores`` the runs in which the journal itself goes back, ``report`` what people
read. Everything outside ``plan`` deals with real processes, sockets and databases.
"""
