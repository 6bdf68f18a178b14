"""Both reference models equal the oracles under every option of every choice."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from component_inputs import SIZES, inputs_of
from proof import share

from attentest.analysis.identify.reach import axes_of
from attentest.faults.reference_models import DECLARED, REFERENCE_MODELS, reference_backend
from attentest.harness.arithmetic import unrounded
from attentest_spec import CHOICES, COMPONENTS, Choices, Setting
from attentest_spec.choices import Value
from attentest_spec.oracles import METHODS, ORACLES
from attentest_spec.order import ordered
from attentest_spec.parameters import draw, tied

torch.set_num_threads(1)

NUMBERS: Mapping[str, Value] = {
    "mask_fill": -2.5,
    "norm_epsilon": 0.01,
    "position_offset": 2,
    "rotary_base": 500.0,
    "rotary_width": 0.5,
    "rotary_magnitude": 1.25,
    "score_scale": 0.7,
    "score_cap": 1.5,
}
OPTIONS = [
    {},
    *({choice.name: option.name} for choice in CHOICES.values() for option in choice.options),
    *({name: number} for name, number in NUMBERS.items()),
]
DIFFERENT_VOCABULARIES = ("none", "target-and-output")


def _name(option: Mapping[str, Value]) -> str:
    return ",".join(f"{name}={value}" for name, value in option.items()) or "declared"


@pytest.fixture(params=REFERENCE_MODELS)
def model(request):
    return REFERENCE_MODELS[request.param]


PARTS = list(product(REFERENCE_MODELS.values(), COMPONENTS))
"""Each reference model with each component."""


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def _sizes(choices):
    sizes = SIZES if choices.attention_rotary == "none" else SIZES.but(d_model=8)  # pairs in heads
    return sizes.but(target_vocabulary=13) if choices.tying in DIFFERENT_VOCABULARIES else sizes


def _part(model, component, option, rng, **sizes):
    choices = Choices.of({**DECLARED, **option})
    wanted = _sizes(choices).but(**sizes)
    part = reference_backend(model, option).build(component, wanted)
    parameters = draw(component, wanted, choices, rng, decimals=12)
    part.load(parameters)
    return part, Setting(wanted, choices, parameters)


def _close(actual, expected, tolerance=1e-11, name=""):
    actual = actual if isinstance(actual, tuple) else (actual,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=name)


def _rounding(given, component, inputs):
    """Return the tolerance for parts in float32: how far they move the oracle's answer."""
    exact = replace(given, choices=unrounded(given.choices))
    one, other = (_first(ORACLES[component](each, *inputs)) for each in (given, exact))
    return 8 * np.abs(one.astype(float) - other).max()


@share(4)
@pytest.mark.parametrize(("model", "component"), PARTS)
def test_model_equals_the_oracle_under_its_own_choices(model, component):
    for option in OPTIONS:
        if _own(option, component):
            _equals_the_oracle(model, component, option)


@share(3)
@pytest.mark.parametrize("component", COMPONENTS)
def test_model_equals_the_oracle_under_choices_of_other_components(model, component):
    for options in _together(component):
        _equals_the_oracle(model, component, options)


def _together(component):
    """Return the options of all choices that the component does not depend on, many at once.

    The first has the first option of each of these choices, the second their second, and so on.
    """
    others: dict[str, list[Value]] = {}
    for option in OPTIONS:
        if not _own(option, component):
            for name, value in option.items():
                others.setdefault(name, []).append(value)
    longest = max(map(len, others.values()), default=0)
    return [
        {name: values[turn % len(values)] for name, values in others.items()}
        for turn in range(longest)
    ]


def _own(option, component):
    """Return whether a component may depend on the option; any may be one of decoding."""
    return COMPONENTS[component].chapter == "decoding" or {*option} <= {*axes_of(component)}


def _equals_the_oracle(model, component, option):
    if component.startswith("cached_") and "mask_fill" in option:
        return  # earlier rows depend on later ones where masked keys have some weight
    if component == "multi_head_attention" and ordered(Choices.of(option)):
        option = {"query_alignment": "end", **option}  # the inputs have fewer queries than keys
        if option["query_alignment"] == "equal-numbers":
            return
    rng = np.random.default_rng(7)
    part, given = _part(model, component, option, rng)
    inputs = inputs_of(component, given.sizes, rng)
    tolerance = 1e-11 + _rounding(given, component, inputs)
    _close(part(*inputs), ORACLES[component](given, *inputs), tolerance, _name(option))


@pytest.mark.parametrize(
    ("place", "variance", "positions"),
    list(
        product(
            ("inside-root", "added-to-deviation"), ("biased", "unbiased"), ("halves", "learned")
        )
    ),
)
def test_model_equals_the_oracle_at_an_odd_width(model, place, variance, positions, rng):
    option = {
        "norm_epsilon_place": place,
        "norm_variance": variance,
        "positional_encoding": positions,
        "norm_placement": "pre",
        "final_norm": "present",
        "norm_sharing": "shared",
        "head_width": "d",
    }
    part, given = _part(model, "model", option, rng, d_model=5)
    inputs = inputs_of("model", given.sizes, rng)
    _close(part(*inputs), ORACLES["model"](given, *inputs))


@pytest.mark.parametrize("option", ["unspecified", "uniform", "zero", "nan"])
def test_fully_masked_rows_are_as_declared(model, option, rng):
    part, given = _part(model, "attention", {"fully_masked_row": option}, rng)
    query, key, value, mask = inputs_of("attention", given.sizes, rng)
    mask[1, 0, 1] = False
    actual = part(query, key, value, mask)
    expected = ORACLES["attention"](given, query, key, value, mask)
    if option == "unspecified":
        for one, other in zip(actual, expected, strict=True):
            one[1, :, 1] = other[1, :, 1]
    _close(actual, expected)


@pytest.mark.parametrize("option", ["uniform", "zero"])
def test_fully_masked_rows_have_finite_gradients(model, option, rng):
    part, given = _part(model, "attention", {"fully_masked_row": option}, rng)
    query, key, value, mask = inputs_of("attention", given.sizes, rng)
    mask[...] = False
    gradient = part.vjp((query, key, value, mask), np.ones((2, 3, 3, 2)))
    assert all(np.isfinite(one).all() for one in gradient.inputs[:3])


def test_encode_then_decode_equals_the_model(model, rng):
    part, given = _part(model, "model", {}, rng)
    source, target = inputs_of("model", given.sizes, rng)
    memory = part(source, method="encode")
    _close(memory, METHODS["encode"](given, source))
    np.testing.assert_array_equal(
        part(target, memory, source, method="decode"), part(source, target)
    )


@pytest.mark.parametrize("component", COMPONENTS)
def test_parameters_round_trip(model, component, rng):
    part, given = _part(model, component, {}, rng)
    exported = part.export()
    assert exported.keys() == given.parameters.keys()
    for name, values in given.parameters.items():
        np.testing.assert_array_equal(exported[name], values)


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_copies_compute_the_same(model, component, how, rng):
    part, given = _part(model, component, {}, rng)
    inputs = inputs_of(component, given.sizes, rng)
    _close(part.copied(how)(*inputs), part(*inputs))
    _close(part.reloaded()(*inputs), part(*inputs))


EXACT = ("learning_rate",)
"""Components that compute in float64 whatever the precision of the model is."""


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("component", COMPONENTS)
def test_every_precision_is_kept(model, component, precision):
    rng = np.random.default_rng(3)
    part = reference_backend(model).build(component, SIZES, precision=precision)
    given = [
        _as(value, precision) if getattr(value, "dtype", None) == np.float64 else value
        for value in inputs_of(component, SIZES, rng)
    ]
    result = part(*given)
    output = result[0] if isinstance(result, tuple) else result
    others = ("float64",) if component in EXACT else ("bool", "int64")
    assert str(output.dtype) in (precision, *others)
    assert np.isfinite(output.astype(np.float64)).all()


def _as(values, precision):
    from attentest_spec.precision import dtype

    return np.ascontiguousarray(values).astype(dtype(precision))


@pytest.mark.parametrize("component", ["attention", "feed_forward", "residual", "model"])
def test_dropout_acts_in_training_alone(model, component, rng):
    part = reference_backend(model).build(component, SIZES.but(dropout=0.5))
    inputs = inputs_of(component, SIZES, rng)
    quiet = _first(part(*inputs))
    part.train()
    assert not np.array_equal(_first(part(*inputs)), _first(part(*inputs)))
    part.eval()
    np.testing.assert_array_equal(_first(part(*inputs)), quiet)


def _first(result):
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("component", COMPONENTS)
def test_inputs_are_unchanged(model, component, rng):
    part, given = _part(model, component, {}, rng)
    inputs = [np.array(value) for value in inputs_of(component, given.sizes, rng)]
    before = [value.copy() for value in inputs]
    part(*(value if value.ndim else int(value) for value in inputs))
    for now, then in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(
    ("component", "sizes", "numbers"),
    [
        ("multi_head_attention", {"d_model": 6, "heads": 4}, ("6", "4")),
        ("multi_head_attention", {"d_model": 0}, ("0",)),
        ("feed_forward", {"d_ff": 0}, ("0",)),
        ("encoder", {"layers": 0}, ("0",)),
        ("attention", {"dropout": 1.5}, ("1.5",)),
        ("model", {"source_vocabulary": 7, "target_vocabulary": 8}, ("7", "8")),
    ],
)
def test_impossible_sizes_are_refused(model, component, sizes, numbers):
    with pytest.raises(ValueError, match=".*".join(numbers)):
        reference_backend(model).build(component, SIZES.but(**sizes))


def test_foreign_token_is_refused(model):
    part = reference_backend(model).build("embedding", SIZES)
    for foreign in (-1, 11):
        with pytest.raises(IndexError, match=f"{foreign}.*11"):
            part(np.array([[1, foreign]]))


def test_learned_table_refuses_longer_inputs(model):
    backend = reference_backend(model, {"positional_encoding": "learned"})
    part = backend.build("positional_encoding", SIZES)
    with pytest.raises(ValueError, match=r"6.*5"):
        part(np.zeros((1, 6, 6)))


@pytest.mark.parametrize("place", ["inside-root", "added-to-deviation"])
def test_constant_row_has_a_finite_gradient(model, place, rng):
    part, _ = _part(model, "layer_norm", {"norm_epsilon_place": place}, rng)
    width = SIZES.d_model
    gradient = part.vjp((np.full((1, 2, width), 2.0),), rng.normal(size=(1, 2, width)))
    assert np.isfinite(gradient.inputs[0]).all()


def test_parameters_are_initialised(model):
    part = reference_backend(model, {"tying": "none"}).build("model", SIZES)
    initial = part.export()
    first, second = (initial[f"encoder.layers.{n}.feed_forward.inner.weight"] for n in (0, 1))
    assert not np.array_equal(first, second)
    for name, values in initial.items():
        assert np.isfinite(values).all()
        assert np.abs(values).max() < 10
        if name.endswith(".gain"):
            np.testing.assert_array_equal(values, 1.0)
        if name.endswith(".bias"):
            np.testing.assert_array_equal(values, 0.0)


@pytest.mark.parametrize("option", ["all-three", "target-and-output"])
def test_tied_matrices_are_one(model, option):
    part = reference_backend(model, {"tying": option}).build("model", SIZES)
    before = part.export()
    for name, twin in tied("model", SIZES, Choices.of({**DECLARED, "tying": option})).items():
        np.testing.assert_array_equal(before[name], before[twin])
    gradient = part.vjp(
        (np.array([[1, 2]]), np.array([[4, 1]])), np.random.default_rng(1).normal(size=(1, 2, 11))
    ).parameters
    np.testing.assert_array_equal(gradient["generator.weight"], gradient["target_embedding.weight"])


def test_every_parameter_has_a_gradient(model, rng):
    part, given = _part(model, "model", {}, rng)
    source, target = inputs_of("model", given.sizes, rng)
    found = part.vjp((source, target), rng.normal(size=(2, 3, 11))).parameters
    idle = [name for name, values in found.items() if not np.abs(values).max() > 1e-12]
    assert all(name.endswith("key.bias") for name in idle)


def test_hooks_of_different_chapters_have_different_names(model):
    """One of two hooks of one name would hide the other one, in every component."""
    owners: dict[str, list[type]] = {}
    for kind in model.__mro__:
        for name, value in vars(kind).items():
            if callable(value) and not name.startswith("__"):
                owners.setdefault(name, []).append(kind)
    separate = {
        name: [
            one.__name__
            for one in kinds
            if not any(other is not one and issubclass(one, other) for other in kinds)
        ]
        for name, kinds in owners.items()
    }
    assert {name: kinds for name, kinds in separate.items() if len(kinds) > 1} == {}
