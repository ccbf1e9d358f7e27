"""Ways to be wrong, each of which a rehearsal must notice."""
