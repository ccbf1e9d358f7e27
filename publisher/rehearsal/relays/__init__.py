"""What stands between workers, database and platform."""
