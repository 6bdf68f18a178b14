"""Two small sound Transformers of unlike style, made to have faults planted into them.

They live here for this purpose alone. A specimen is a class of seams (see
:mod:`attentest.specimens.seams`); a fault overrides one of them.
"""

from collections.abc import Mapping

from attentest.specimens.backend import DECLARED, specimen_backend
from attentest.specimens.fused import Fused
from attentest.specimens.modules import Node
from attentest.specimens.plain import Plain
from attentest.specimens.seams import Mask, Seams, seam_names

SPECIMENS: Mapping[str, type[Seams]] = {"plain": Plain, "fused": Fused}

__all__ = [
    "DECLARED",
    "SPECIMENS",
    "Fused",
    "Mask",
    "Node",
    "Plain",
    "Seams",
    "seam_names",
    "specimen_backend",
]
