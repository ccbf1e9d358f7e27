"""Backups put back, clones and failovers: the journal itself goes back."""
