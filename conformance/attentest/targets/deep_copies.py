"""Deep copies of modules, of those too that hold what Python cannot copy."""

from copy import deepcopy
from typing import TypeVar

from torch import nn

Copied = TypeVar("Copied")


def copy_of(module: Copied) -> Copied:
    """Return a deep copy of a module, or of anything else that can be copied.

    Static and class methods that its parts hold as attributes have no copy in Python: these are
    shared, as all other functions are.
    """
    parts = module.modules() if isinstance(module, nn.Module) else ()
    held = (value for part in parts for value in vars(part).values())
    return deepcopy(
        module, {id(one): one for one in held if isinstance(one, staticmethod | classmethod)}
    )
