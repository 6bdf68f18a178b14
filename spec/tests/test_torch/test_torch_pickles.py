"""Copies of modules by way of a pickle, and modules that have none."""

import pytest
import torch
from torch import nn

from attentest_spec.contract import Unsupported
from attentest_spec.torch.pickles import pickled


class Applied(nn.Module):
    """A linear map and a function in an attribute."""

    def __init__(self, function: object) -> None:
        super().__init__()
        self.weight = nn.Linear(2, 2, bias=False)
        self.function = function


def test_a_module_with_a_lambda_has_a_deep_copy_and_no_pickled_one() -> None:
    assert isinstance(pickled(Applied(torch.relu)), Applied)
    with pytest.raises(Unsupported, match="pickle"):
        pickled(Applied(lambda x: x))


def test_a_failure_while_pickling_is_no_refusal() -> None:
    class Wrong(Applied):
        def __getstate__(self) -> object:
            raise TypeError("a mistake of its own")

    with pytest.raises(TypeError, match="a mistake of its own"):
        pickled(Wrong(torch.relu))
