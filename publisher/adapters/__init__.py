"""One part per platform. They do not know one another; only ``bootstrap`` names them."""
