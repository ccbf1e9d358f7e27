"""Who acts: the product's own processes, watched, and people."""
