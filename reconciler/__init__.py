"""Looks at the page for evidence about doubtful sends; it never sends."""
