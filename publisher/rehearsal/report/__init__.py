"""What came of it, for people and machines."""
