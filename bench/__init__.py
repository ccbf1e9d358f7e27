"""Our engine beside other queues, on one server, in one run. See README.md."""
