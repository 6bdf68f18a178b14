"""Code that needs a package which is not installed is asked about with that reason."""

import pytest
from torch import nn

import attentest
from attentest.targets.adapt import Unclear


class NeedsFastKernels(nn.Module):
    """Import a package that is not installed when it is called."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.projections = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        import kernels_that_are_missing

        return kernels_that_are_missing.attend(query, key, value, mask)


def test_missing_import_is_the_reason_that_is_given() -> None:
    with pytest.raises(Unclear, match="Install what is missing first"):
        attentest.adapted(NeedsFastKernels, component="multi_head_attention")
