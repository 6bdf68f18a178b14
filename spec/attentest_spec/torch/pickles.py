"""Copies of modules by way of a pickle, as worker processes get them."""

import io
import pickle
from typing import Any

import torch
from torch import nn

from attentest_spec.contract import Unsupported


def pickled(module: nn.Module) -> Any:
    """Return the copy of `module` that `torch.save` and `torch.load` make.

    Raises Unsupported where Python refuses to pickle what it holds, such as a lambda.
    """
    stored = io.BytesIO()
    try:
        torch.save(module, stored)
    except (pickle.PicklingError, AttributeError, TypeError) as refusal:
        if "pickle" not in str(refusal):
            raise
        raise Unsupported(str(refusal)) from refusal
    stored.seek(0)
    # The bytes were written above, by this process: no foreign data is unpickled.
    return torch.load(stored, weights_only=False)
