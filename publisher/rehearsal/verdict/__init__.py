"""What must hold after every schedule."""
