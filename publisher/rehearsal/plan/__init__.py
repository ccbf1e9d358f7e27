"""What is done in a schedule: pure."""
