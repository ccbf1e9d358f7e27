"""What is wrong with a deployment, and what to do about it: one small check per concern.

``catalogue`` lists them, ``examination`` runs them. A check only reads; the one thing it writes is
a probe file that it removes again.
"""
