"""Where schedules run, and who directs them."""
