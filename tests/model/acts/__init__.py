"""Who can move next, and how: one module for each kind of actor."""
