"""The terminal: commands that read their arguments, call one use case and say what came of it.

Exit codes, everywhere: 0 done · 1 the outcome is not as wished · 2 bad usage or set-up · 3 needs a
person · 4 conflict · 70 a fault of ours · 130 interrupted.
"""
