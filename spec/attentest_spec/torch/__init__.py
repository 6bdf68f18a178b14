"""Torch modules and functions as backends of the contract."""

from attentest_spec.torch.array_modules import module_on_arrays
from attentest_spec.torch.array_variables import is_of_variables, module_on_variables
from attentest_spec.torch.arrays import on_arrays
from attentest_spec.torch.backend import Recipe, TorchBackend, TorchPart, of_function
from attentest_spec.torch.cached import cached_decoding, cached_language_model
from attentest_spec.torch.missing_cuda import ignore_moves, ignore_ranges
from attentest_spec.torch.script import Script
from attentest_spec.torch.values import DTYPES, to_array, to_tensor

__all__ = [
    "DTYPES",
    "Recipe",
    "Script",
    "TorchBackend",
    "TorchPart",
    "cached_decoding",
    "cached_language_model",
    "is_of_variables",
    "module_on_arrays",
    "module_on_variables",
    "of_function",
    "on_arrays",
    "to_array",
    "to_tensor",
]

ignore_moves()
ignore_ranges()
