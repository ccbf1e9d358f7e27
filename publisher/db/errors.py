"""What can be wrong with a database before work starts; each says what is to be done.

::

    DatabaseError
    ├── EmbeddedError               the server we would start ourselves
    │   ├── WheelMissingError       its binaries are not installed
    │   ├── HomeUnusableError       PUBLISHER_HOME cannot be used
    │   ├── DiskFullError
    │   ├── WrongMajorError         the data directory is another PostgreSQL's
    │   └── StartFailedError
    ├── AddressError                PUBLISHER_DATABASE_URL cannot be read
    ├── UnreachableError            nobody answers there
    ├── LoginRefusedError           the server answers and lets us not in
    ├── RoleRefusedError            the login user may not act in the role
    ├── RolesMissingError           roles or schema are missing and we may not make them
    ├── BackupError                 a dump cannot be made or put back
│   └── RestoreUnclearError     the answer to its commit was lost
├── MigrationError              the schema cannot be brought to this release's revision
    └── PreflightError              the server would break the promise; in ``preflight``
"""

from __future__ import annotations


class DatabaseError(Exception):
    """A database a person has to put right; ``str()`` is what to tell them, free of secrets."""


class EmbeddedError(DatabaseError):
    """The embedded server cannot be used."""


class WheelMissingError(EmbeddedError):
    """No PostgreSQL binaries are installed."""


class HomeUnusableError(EmbeddedError):
    """The home directory cannot be written, reached or trusted."""


class DiskFullError(EmbeddedError):
    """No room is left under the home directory."""


class WrongMajorError(EmbeddedError):
    """The data directory was made by another major version of PostgreSQL."""


class StartFailedError(EmbeddedError):
    """The server did not come up, or did not go down."""


class AddressError(DatabaseError):
    """The database URL cannot be read. The message never repeats it: it may hold a password."""


class UnreachableError(DatabaseError):
    """No server answered, or it said that it is only starting or full."""


class LoginRefusedError(DatabaseError):
    """The server answered and refused the user, the password or the database."""


class RoleRefusedError(DatabaseError):
    """The login user may not act in the role that was asked for."""


class RolesMissingError(DatabaseError):
    """Roles or schema are missing and the login user may not create them."""

    def __init__(self, sentence: str, sql: str) -> None:
        """Say ``sentence``, then the SQL."""
        super().__init__(f"{sentence}\n\n{sql}")
        self.sql = sql


class BackupError(DatabaseError):
    """A dump cannot be made or put back; what was there before is there still."""


class RestoreUnclearError(BackupError):
    """The connection broke as a restore was committed."""

    def __init__(self) -> None:
        """Say what is to be done."""
        super().__init__(
            "The connection was lost as the dump was committed: it may have been put back, or"
            " not. Restore it again."
        )


class MigrationError(DatabaseError):
    """The schema cannot be read or brought to the revision this release needs."""
