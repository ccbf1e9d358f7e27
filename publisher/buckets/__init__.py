"""S3-compatible object stores: their addresses in a setting, and what speaks to them."""
