"""Recognises norms that follow the formula in all but their epsilon, alone and inside of code."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, permutations, product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attentest.analysis.identify.norms import EPSILONS, options
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.parameters.found import FoundTable, Observed
from attentest.targets.adapt.parameters.trials.open_choices import LOOSE
from attentest.targets.adapt.parameters.trials.trial import places, read
from attentest.targets.adapt.probing import SIZES, Probe, undisturbed
from attentest.targets.deep_copies import copy_of
from attentest_spec import Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import shapes
from attentest_spec.setting import Floats, Setting
from attentest_spec.torch import to_array

_OF_NORMS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "layer_norm": ("norm_epsilon", "norm_variance", ("biased", "unbiased")),
    "rms_norm": ("rms_epsilon", "rms_weight", ("weight", "one-plus-weight")),
}
"""The epsilon of each norm, the choice that large rows depend on, and its options."""

_LARGE = 2
"""The number of rows in which no epsilon shows."""

_TENS = (1e-2, 1e-4, 1e-10, 1e-11)
"""The other powers of ten that an epsilon may be."""

_SINGLE = 1e-4
"""The relative error within which results in float32 follow a formula."""


@dataclass(frozen=True)
class Norm:
    """A norm as it was built, with its parameters by their canonical names.

    `call` takes what was built and rows.
    """

    component: str
    built: object
    call: Callable[..., Any]
    held: Mapping[str, Floats]
    sizes: Sizes

    def rows(self) -> "_Rows | None":
        """Return the rows that it gives in float64."""
        return _Rows.of(self.component, lambda x: self.call(self.built, x), self.held, self.sizes)

    def rows_in_single(self) -> "_Rows | None":
        """Return the rows that it gives in float32."""
        built = copy_of(self.built)
        single = built.float() if isinstance(built, nn.Module) else built
        return _Rows.of(
            self.component, lambda x: self.call(single, x.float()), self.held, self.sizes
        )


def norm_of(probe: Probe, adapter: Adapter, found: FoundTable, known: Choices) -> Norm | None:
    """Return the norm that was read, None for other components and for unknown parameters."""
    component = adapter.component
    if component not in _OF_NORMS:
        return None
    seen = found.observed
    if seen is None:
        every = shapes(component, SIZES, known).items()
        plain = {name: np.full(shape, float(name == "gain")) for name, shape in every}
        return Norm(component, probe.built, adapter, plain, SIZES)
    own, sizes = seen.run.own, seen.sizes
    held = read(places(component, found.table, own, sizes, known), own, sizes)
    if shapes(component, sizes, known).keys() - held.keys():
        return None  # one number for all columns, for instance, is no gain
    return Norm(component, seen.module, adapter, held, sizes)


def formula_without_weights(norm: Norm | None) -> dict[str, Value]:
    """Return the choices of the formula that a layer norm without parameters computes.

    They are {} where no option with an epsilon in use, or a power of ten, gives rows of all scales.
    """
    rows = norm.rows() if norm is not None else None
    if rows is None:
        return {}
    usual = product(*map(options, _OF_FORMULA[:2]), (*EPSILONS, *_TENS))
    tried = (dict(zip(_OF_FORMULA, one, strict=True)) for one in usual)
    return next((one for one in tried if rows.fit(Choices().but(**one))), {})


def is_without_weights(norm: Norm, known: Choices) -> bool:
    """Say whether rows of all scales are the formula's, with weights that change nothing."""
    rows, (epsilon, *_) = norm.rows(), _OF_NORMS[norm.component]
    tried = (known.but(**{epsilon: one}) for one in EPSILONS)
    return rows is not None and any(map(rows.fit, tried))


def other_epsilon(norm: Norm, known: Choices) -> str:
    """Recognise a norm of which only small rows differ from the formula under `known`.

    An epsilon that depends on the width fits at one width, and at no other one.
    """
    rows = norm.rows()
    if rows is None or not rows.follow(_large(norm.component, known, norm.held)):
        return ""
    if not rows.fit(known):
        alone = norm.rows_in_single()  # it may be judged in that alone
        fits = alone is not None and alone.fit(known, error=_SINGLE)
        return "" if fits else _sentence(norm.component, "its")
    own = epsilon_in_single(norm, known)
    if own is None:
        return ""
    return (
        f"its epsilon is {own:g} in float32 and {known[_OF_NORMS[norm.component][0]]:g} in "
        f"float64, and the spec has one for all precisions: give it one"
    )


def epsilon_in_single(norm: Norm, known: Choices) -> float | None:
    """Return the usual epsilon that a norm has in float32 alone, with that of `known` in float64.

    None where it has that of `known` in float32, too, or none that is usual.
    """
    double = norm.rows()
    if double is None or not double.fit(known):
        return None
    rows = norm.rows_in_single()
    name, *_ = _OF_NORMS[norm.component]
    if rows is None or rows.fit(known, error=_SINGLE):
        return None
    return next(
        (one for one in EPSILONS if one and rows.fit(known.but(**{name: one}), error=_SINGLE)),
        None,
    )


def inner_epsilon(seen: Observed) -> str:
    """Recognise a layer norm inside of code whose small rows no option gives, "" for none."""
    places, variances = options("norm_epsilon_place"), options("norm_variance")
    for path, module in seen.module.named_modules():
        for held in _gain_and_bias(path, module, seen.sizes):
            rows = _Rows.of("layer_norm", module, held, seen.sizes)
            if rows is None or not rows.follow(_large("layer_norm", Choices(), held)):
                continue
            usual = product(places, variances, (*EPSILONS, *_own(module)))
            if not any(rows.fit(_norm(*one)) for one in usual):
                return _sentence("layer_norm", f"{path} is a layer norm whose")
    return ""


def formula_of_inner_norms(seen: Observed) -> dict[str, Value]:
    """Return the choices of the formula of the layer norms inside of code, {} where they differ.

    They show by calls of each norm alone, whatever the code around them does with its rows.
    """
    found: list[dict[str, Value]] = []
    for path, module in seen.module.named_modules():
        if isinstance(module, nn.LayerNorm):
            found.append(dict(zip(_OF_FORMULA, ("inside-root", "biased", module.eps), strict=True)))
        for held in _gain_and_bias(path, module, seen.sizes):
            rows = _Rows.of("layer_norm", module, held, seen.sizes)
            usual = product(*map(options, _OF_FORMULA[:2]), (*EPSILONS, *_own(module)))
            tried = (dict(zip(_OF_FORMULA, one, strict=True)) for one in usual)
            fits = (one for one in tried if rows is not None and rows.fit(Choices().but(**one)))
            found += islice(fits, 1)
    return found[0] if found and all(one == found[0] for one in found) else {}


_OF_FORMULA = ("norm_epsilon_place", "norm_variance", "norm_epsilon")


def _norm(place: Value, variance: Value, epsilon: float) -> Choices:
    return Choices().but(norm_epsilon_place=place, norm_variance=variance, norm_epsilon=epsilon)


def _sentence(component: str, whose: str) -> str:
    epsilon, *_ = _OF_NORMS[component]
    return (
        f"{whose} large rows follow the formula, and no option of {epsilon}_place with any "
        f"{epsilon} gives its small ones"
    )


def _large(component: str, known: Choices, held: Mapping[str, Floats]) -> list[Choices]:
    """Return the choices that large rows may follow."""
    epsilon, axis, values = _OF_NORMS[component]
    tried = (known[axis], *values) if held else (known[axis],)
    return [known.but(**{epsilon: 0.0, axis: one}) for one in tried]


def _own(module: nn.Module) -> list[float]:
    """Return the numbers that a module holds, one of which may be its epsilon."""
    return [one for one in vars(module).values() if isinstance(one, float) and 0 < one < 1]


def _gain_and_bias(path: str, module: nn.Module, sizes: Sizes) -> Iterator[dict[str, Floats]]:
    """Yield the parameters of what may be a layer norm, the other way round as well."""
    held = [one.detach() for one in module.parameters()]
    if not path or isinstance(module, nn.LayerNorm) or len(held) != 2:
        return
    if all(one.shape == (sizes.d_model,) for one in held):
        for gain, bias in permutations(to_array(one.double()) for one in held):
            yield {"gain": gain, "bias": bias}


class _Rows:
    """Rows of all scales, the largest first, and what a norm with the parameters `held` gives."""

    def __init__(
        self, component: str, x: Floats, output: Floats, held: Mapping[str, Floats], sizes: Sizes
    ) -> None:
        self.component, self.x, self.output = component, x, output
        self.held, self.sizes = held, sizes

    @classmethod
    def of(
        cls,
        component: str,
        call: Callable[[Tensor], Any],
        held: Mapping[str, Floats],
        sizes: Sizes,
    ) -> "_Rows | None":
        """Call a norm; None where it gives no rows of that shape."""
        scales = np.logspace(6, -9, 16)[:, None]
        x = scales * np.random.default_rng(4).normal(size=(1, len(scales), sizes.d_model))
        try:
            with undisturbed():
                result = call(torch.from_numpy(x.copy()))
        except Exception:  # code that a user wrote may raise anything
            return None
        output = result[0] if isinstance(result, tuple | list) else result
        if not isinstance(output, Tensor) or output.shape != x.shape:
            return None
        return cls(component, x, to_array(output), held, sizes)

    def follow(self, tried: list[Choices]) -> bool:
        """Say whether the large rows are those of the formula under one of the choices."""
        return any(self.fit(choices, _LARGE) for choices in tried)

    def fit(self, choices: Choices, rows: int | None = None, error: float = LOOSE) -> bool:
        """Say whether the first `rows` rows, or all, are those of the formula under `choices`."""
        given = Setting(self.sizes, choices, dict(self.held))
        wanted = ORACLES[self.component](given, self.x[:, :rows])
        apart = np.abs(self.output[:, :rows] - wanted).max(-1)
        return bool((apart <= error * np.abs(wanted).max(-1)).all())
