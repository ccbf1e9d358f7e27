"""Import a file of approved posts: ``publisher posts import``."""

from publisher.editorial.imports.fault import Fault, FileRefused
from publisher.editorial.imports.importer import import_posts
from publisher.editorial.imports.report import Report, RowReport, Status

__all__ = ["Fault", "FileRefused", "Report", "RowReport", "Status", "import_posts"]
