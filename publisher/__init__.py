"""A publishing queue for social posts that never posts twice."""
