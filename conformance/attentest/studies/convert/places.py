"""Canonical parameters with a place in the target, and the values where none is carried over."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from attentest.studies.convert.phrases import phrases
from attentest_spec import Choices, Setting, Sizes
from attentest_spec.positional_encoding import table
from attentest_spec.setting import Array

Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Places:
    """The canonical `parameters` of a source, and those of the target as it was `built`."""

    parameters: Arrays
    built: Arrays

    def fitting(self) -> dict[str, Array]:
        """Return the parameters that the target has with the same shape."""
        return {
            name: array
            for name, array in self.parameters.items()
            if name in self.built and self.built[name].shape == array.shape
        }

    def given(self, sizes: Sizes, choices: Choices) -> dict[str, Array]:
        """Return what the target is given: what fits, and what comes closest to nothing."""
        added = self.built.keys() - self.parameters.keys()
        stand_ins = {name: _stand_in(name, self.built[name], sizes, choices) for name in added}
        return {**self.built, **stand_ins, **self.fitting()}

    def lost(self) -> list[str]:
        """Say what is not carried exactly."""
        kept = self.fitting()
        unlike = [
            f"{name} {array.shape}, not {self.built[name].shape}"
            for name, array in self.parameters.items()
            if name in self.built.keys() - kept
        ]
        return phrases(
            ("parameters have another shape in the target", unlike),
            ("the target has more parameters", sorted(self._added() - self._free())),
            ("the target has no place for", sorted(self._dropped() - self._zero())),
        )

    def notes(self) -> list[str]:
        """Say what was added and left out without an effect."""
        return phrases(
            ("biases that the source has not were set to zero", sorted(self._free())),
            ("biases of zeros were left out", sorted(self._zero())),
        )

    def _added(self) -> set[str]:
        return set(self.built.keys() - self.parameters.keys())

    def _dropped(self) -> set[str]:
        return set(self.parameters.keys() - self.built.keys())

    def _free(self) -> set[str]:
        return {name for name in self._added() if _beside(name, self.parameters)}

    def _zero(self) -> set[str]:
        return {
            name
            for name in self._dropped()
            if _beside(name, self.built) and not self.parameters[name].any()
        }


def _beside(name: str, known: Collection[str]) -> bool:
    """Say whether `name` is a bias beside a weight or a gain in `known`.

    There, being without one is the same as having one of zeros.
    """
    part, _, leaf = name.rpartition(".")
    return leaf == "bias" and any(f"{part}.{other}" in known for other in ("weight", "gain"))


def _stand_in(name: str, built: Array, sizes: Sizes, choices: Choices) -> Array:
    """Return what comes closest to having no parameter `name`: where nothing does, as `built`."""
    if name.endswith("_positions.weight"):
        return table(Setting(sizes, choices), *built.shape).astype(built.dtype)
    if name.endswith(".gain"):
        return np.ones_like(built)
    return np.zeros_like(built) if name.endswith(".bias") else built
