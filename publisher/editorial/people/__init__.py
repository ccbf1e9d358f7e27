"""Who may do what: workspaces, people and their roles, how they sign in, and what they did.

Read ``roles`` first, then ``person``, ``sign_in`` and ``sessions``; ``tokens`` is for programs.
"""
