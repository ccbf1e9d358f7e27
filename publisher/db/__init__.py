"""The database: our own server, connections in a role, migrations, the check before work."""
