"""The silent-bug index: catalogued mistakes in small trainings, and what shows them.

Each mistake is injected into a reference model that is trained on small tasks, from the same data
and weights as the correct one. Compared are the training loss, the held-out loss and the accuracy
of greedy decoding, each against the range that seeds alone give.
"""
