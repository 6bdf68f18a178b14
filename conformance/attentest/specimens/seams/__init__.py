"""The seams: one small method per step of the Transformer, where a fault can be planted.

What is only a matter of order stands here once; every step that computes or builds something is
written twice, in unlike styles, by the specimens.
"""

from attentest.specimens.seams.attention import Mask
from attentest.specimens.seams.base import Base
from attentest.specimens.seams.model import ModelSeams


class Seams(ModelSeams):
    """Every seam of every component; the specimens implement the abstract ones."""


def seam_names() -> frozenset[str]:
    """Return the names of all seams: what a fault may override."""
    helpers = {"sound", *vars(object)}
    return frozenset(
        name
        for kind in Seams.__mro__
        if issubclass(kind, Base)
        for name, value in vars(kind).items()
        if callable(value) and not name.startswith("_") and name not in helpers
    )


__all__ = ["Base", "Mask", "Seams", "seam_names"]
