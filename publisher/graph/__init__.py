"""Meta's dialect: how a Graph call is built, and what its answers mean."""
