"""How Alembic runs here: on the connection that ``publisher.db.migrate`` hands it, and only so.

There is no ``alembic.ini`` and no offline mode. The connection acts as ``publisher_owner``, holds
the advisory lock of upgrades, and has ``lock_timeout`` set, so that a migration that meets a long
transaction gives up instead of queueing every worker behind itself.
"""

from alembic import context

from publisher.db.migrate import VERSION_TABLE
from publisher.db.roles import SCHEMA

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    version_table_schema=SCHEMA,
    # One migration fails alone, and one that needs CREATE INDEX CONCURRENTLY can step out.
    transaction_per_migration=True,
)

with context.begin_transaction():
    context.run_migrations()
