"""The torch adapter over torch's own attention, whose projections are packed into one weight."""

import ml_dtypes
import numpy as np
import pytest
import torch
from reference import hidden
from torch import Tensor, nn

from attentest_spec.choices import Choices
from attentest_spec.contract import Backend, Part, Unsupported
from attentest_spec.mapping import Place
from attentest_spec.names import UnknownName
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import draw
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.sizes import Sizes
from attentest_spec.torch import Recipe, TorchBackend, TorchPart, to_array, to_tensor

SIZES = Sizes(d_model=6, heads=2, dropout=0.5)
PACKED = {
    f"{name}.{kind}": Place(f"in_proj_{kind}", part=(place, 3))
    for place, name in enumerate(("query", "key", "value"))
    for kind in ("weight", "bias")
}


def _attend(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, keep: Tensor) -> Tensor:
    hide = None if keep is None else hidden(keep.numpy(), query.shape[1], SIZES.heads)
    output: Tensor = module(query, key, value, attn_mask=hide, need_weights=False)[0]
    return output


def _attention(sizes: Sizes) -> nn.Module:
    return nn.MultiheadAttention(
        sizes.d_model, sizes.heads, dropout=sizes.dropout, batch_first=True
    )


class Transposed(nn.Module):
    """A generator that stores its weight as (in, out), tied to nothing."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.zeros(sizes.d_model, sizes.target_vocabulary))
        self.shift = nn.Parameter(torch.zeros(sizes.target_vocabulary), requires_grad=False)
        self.register_buffer("table", torch.ones(3), persistent=False)
        self.loose = torch.ones(2)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the logits."""
        return x @ self.kernel + self.shift


BACKEND = TorchBackend(
    name="glued",
    title="torch's attention",
    choices={"projection_bias": "present", "output": "logits"},
    recipes={
        "multi_head_attention": Recipe(
            _attention, _attend, parameters={**PACKED, "output": "out_proj"}
        ),
        "generator": Recipe(
            Transposed, parameters={"weight": Place("kernel", transpose=True), "bias": "shift"}
        ),
        "causal_mask": Recipe(
            build=lambda sizes: lambda length: torch.ones(length, length).tril()[None, None] > 0
        ),
        "padding_mask": Recipe(
            build=lambda sizes: lambda tokens, pad: (tokens != pad)[:, None, None, :]
        ),
    },
)


def loaded(rng: np.random.Generator) -> tuple[TorchPart, Setting]:
    """Build attention with drawn parameters; give the oracle's setting too."""
    chosen = Choices.of(BACKEND.choices)
    given = Setting(SIZES, chosen, draw("multi_head_attention", SIZES, chosen, rng))
    part = BACKEND.build("multi_head_attention", SIZES)
    part.load(given.parameters)
    return part, given


def drawn(rng: np.random.Generator) -> tuple[Floats, Floats, Floats, Array]:
    """Draw query (3, 5, 6), key and value (3, 7, 6) and a ragged mask."""
    keep = rng.random((3, 1, 1, 7)) < 0.6
    keep[..., 2] = True
    keys, values = rng.normal(size=(2, 3, 7, 6))
    return rng.normal(size=(3, 5, 6)), keys, values, keep


def oracle(given: Setting, *inputs: Array) -> Floats:
    """Compute what is expected."""
    output: Floats = ORACLES["multi_head_attention"](given, *inputs)
    return output


def same(part: TorchPart, other: TorchPart, *inputs: Array) -> bool:
    """Say whether two parts give the same output to the last bit."""
    return bool((part(*inputs) == other(*inputs)).all())


def test_backend_and_part_meet_the_contract() -> None:
    assert isinstance(BACKEND, Backend)
    assert isinstance(BACKEND.build("multi_head_attention", SIZES), Part)
    assert "generator" in BACKEND.components


def test_an_unknown_component_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean multi_head_attention"):
        BACKEND.build("multihead_attention", SIZES)


def test_loaded_parameters_are_the_ones_computed_with(rng: np.random.Generator) -> None:
    part, given = loaded(rng)
    inputs = drawn(rng)
    np.testing.assert_allclose(part(*inputs), oracle(given, *inputs), rtol=0, atol=1e-13)


def test_exported_parameters_are_copies_of_the_loaded_ones(rng: np.random.Generator) -> None:
    part, given = loaded(rng)
    exported = part.export()
    assert list(exported) == list(given.parameters)
    for name, array in exported.items():
        assert (array == given[name]).all()
        array += 1.0
    assert all((array == given[name]).all() for name, array in part.export().items())


def test_a_transposed_parameter_comes_back_as_it_went_in(rng: np.random.Generator) -> None:
    part = BACKEND.build("generator", SIZES)
    parameters = {"weight": rng.normal(size=(13, 6)), "bias": rng.normal(size=13)}
    part.load(parameters)
    assert all((array == parameters[name]).all() for name, array in part.export().items())
    x = rng.normal(size=(2, 3, 6))
    expected = x @ parameters["weight"].T + parameters["bias"]
    np.testing.assert_allclose(part(x), expected, atol=1e-13)


def test_missing_and_extra_parameters_are_named(rng: np.random.Generator) -> None:
    part, given = loaded(rng)
    wrong = dict(given.parameters) | {"inner.weight": np.ones(1)}
    del wrong["key.bias"]
    with pytest.raises(ValueError, match=r"missing \['key.bias'\], extra \['inner.weight'\]"):
        part.load(wrong)


def test_wrong_shape_is_reported_with_both_shapes(rng: np.random.Generator) -> None:
    part, given = loaded(rng)
    wrong = dict(given.parameters) | {"value.weight": np.ones((6, 5))}
    with pytest.raises(ValueError, match=r"value.weight.*\(6, 5\).*in_proj_weight.*\(6, 6\)"):
        part.load(wrong)


def test_a_map_to_nowhere_lists_what_is_there() -> None:
    recipe = Recipe(Transposed, parameters={"weight": "matrix", "bias": "shift"})
    part = TorchBackend(name="lost", title="", recipes={"generator": recipe}).build(
        "generator", SIZES
    )
    with pytest.raises(ValueError, match=r"weight to matrix.*it has: kernel, shift"):
        part.export()


def test_gradients_agree_with_differences_of_the_oracle(rng: np.random.Generator) -> None:
    part, given = loaded(rng)
    inputs = drawn(rng)
    cotangent = rng.normal(size=(3, 5, 6))
    found = part.vjp(inputs, cotangent)
    np.testing.assert_allclose(found.output, oracle(given, *inputs), atol=1e-13)
    assert found.inputs[3] is None
    step = 1e-6
    for place, array in enumerate(inputs[:3]):
        direction = rng.normal(size=array.shape)
        ends = [
            oracle(given, *inputs[:place], array + sign * direction, *inputs[place + 1 :])
            for sign in (step, -step)
        ]
        slope = ((ends[0] - ends[1]) * cotangent).sum() / (2 * step)
        gradient = found.inputs[place]
        assert gradient is not None
        np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=1e-7, atol=1e-8)


def test_gradients_of_packed_parameters_come_apart(rng: np.random.Generator) -> None:
    part, given = loaded(rng)
    inputs = drawn(rng)
    cotangent = rng.normal(size=(3, 5, 6))
    found = part.vjp(inputs, cotangent).parameters
    step = 1e-6
    for name in ("query.weight", "key.weight", "value.weight", "value.bias", "output.weight"):
        direction = rng.normal(size=given[name].shape)
        ends = []
        for sign in (step, -step):
            moved = dict(given.parameters) | {name: given[name] + sign * direction}
            ends.append(oracle(Setting(SIZES, given.choices, moved), *inputs))
        slope = ((ends[0] - ends[1]) * cotangent).sum() / (2 * step)
        np.testing.assert_allclose((found[name] * direction).sum(), slope, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found["key.bias"], 0.0, atol=1e-14)


def test_a_tied_parameter_carries_its_whole_gradient_under_each_name() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(6, 6)
            self.second = self.first

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.second(self.first(x))
            return result

    part = TorchBackend(
        name="twice",
        title="",
        recipes={
            "feed_forward": Recipe(
                build=lambda sizes: Twice(), parameters={"inner": "first", "outer": "second"}
            )
        },
    ).build("feed_forward", SIZES.but(d_ff=6))
    ones = {"weight": np.eye(6), "bias": np.zeros(6)}
    part.load({f"{name}.{kind}": ones[kind] for name in ("inner", "outer") for kind in ones})
    found = part.vjp((np.ones((1, 6)),), np.ones((1, 6))).parameters
    assert (found["inner.bias"] == 2.0).all()
    assert (found["outer.bias"] == 2.0).all()


def test_a_frozen_parameter_and_an_unused_input_have_a_gradient_of_zero() -> None:
    part = BACKEND.build("generator", SIZES)
    found = part.vjp((np.ones((1, 2, 6)),), np.ones((1, 2, 13)))
    assert (found.parameters["bias"] == 0.0).all()
    assert (found.parameters["weight"] == 2.0).all()
    assert found.inputs[0] is not None
    assert (found.inputs[0] == 0.0).all()


def test_copies_compute_the_same_and_are_independent(rng: np.random.Generator) -> None:
    part, given = loaded(rng)
    inputs = drawn(rng)
    for how in ("deepcopy", "pickle"):
        copied = part.copied(how)
        assert same(part, copied, *inputs)
        copied.load({name: np.zeros_like(array) for name, array in given.parameters.items()})
        assert not same(part, copied, *inputs)
    np.testing.assert_allclose(part(*inputs), oracle(given, *inputs), atol=1e-13)


def test_another_way_of_copying_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(UnknownName, match="did you mean pickle"):
        loaded(rng)[0].copied("pickles")


def test_reloaded_part_computes_the_same(rng: np.random.Generator) -> None:
    part, _ = loaded(rng)
    assert same(part, part.reloaded(), *drawn(rng))


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_a_moved_part_answers_in_its_precision(rng: np.random.Generator, precision: str) -> None:
    part, given = loaded(rng)
    moved = part.moved(precision)
    dtype = ml_dtypes.bfloat16 if precision == "bfloat16" else np.dtype(precision)
    *floats, keep = drawn(rng)
    found = moved(*(array.astype(dtype) for array in floats), keep)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.astype(float), oracle(given, *floats, keep), atol=0.1)
    assert moved.export()["key.weight"].dtype == dtype
    assert part.export()["key.weight"].dtype == np.float64


def test_a_part_moved_to_a_device_without_memory_takes_everything_along() -> None:
    held = BACKEND.build("generator", SIZES).moved(device="meta").inventory()
    facts = {**held["parameters"], **held["buffers"]}
    assert {name: fact["device"] for name, fact in facts.items()} == dict.fromkeys(facts, "meta")


def test_an_unknown_precision_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean float32"):
        BACKEND.build("generator", SIZES, precision="float23")


def test_inventory_separates_parameters_buffers_and_loose_tensors() -> None:
    held = BACKEND.build("generator", SIZES).inventory()
    assert set(held["parameters"]) == {"kernel", "shift"}
    kernel = {"shape": (6, 13), "dtype": "float64", "device": "cpu", "trained": True}
    assert held["parameters"]["kernel"] == kernel
    assert not held["parameters"]["shift"]["trained"]
    assert set(held["buffers"]) == {"table"}
    assert set(held["loose"]) == {"loose"}
    assert held["state"] == {"kernel": (6, 13), "shift": (13,)}
    assert held["modes"] == {"": False}


def test_modes_are_those_asked_for(rng: np.random.Generator) -> None:
    part, _ = loaded(rng)
    inputs = drawn(rng)
    assert not any(part.inventory()["modes"].values())
    assert same(part, part, *inputs)
    part.train()
    assert all(part.inventory()["modes"].values())
    assert not same(part, part, *inputs)
    part.eval()
    assert same(part, part, *inputs)


def test_a_plain_function_has_inputs_and_outputs_alone() -> None:
    part = BACKEND.build("causal_mask", SIZES)
    assert part(3).tolist() == np.tri(3, dtype=bool)[None, None].tolist()
    assert part.export() == {}
    part.load({})
    assert "mode" not in part.capabilities
    with pytest.raises(Unsupported, match="plain function"):
        part.train()
    with pytest.raises(UnknownName, match="method"):
        part(3, method="encode")


@pytest.mark.parametrize("kind", ["read-only", "reversed", "broadcast"])
def test_arrays_that_torch_does_not_take_are_copied(rng: np.random.Generator, kind: str) -> None:
    array = np.arange(10)
    array.flags.writeable = kind != "read-only"
    given = {"reversed": array[::-1], "broadcast": np.broadcast_to(array, (3, 10))}.get(kind, array)
    assert (to_array(to_tensor(given)) == given).all()


def test_strides_come_through(rng: np.random.Generator) -> None:
    array = rng.normal(size=(3, 5)).T
    assert to_tensor(array).stride() == (1, 5)
    assert to_tensor(array.astype(ml_dtypes.bfloat16)).stride() == (1, 5)


def test_bfloat16_goes_and_comes_unchanged(rng: np.random.Generator) -> None:
    array = rng.normal(size=(3, 5)).astype(ml_dtypes.bfloat16)
    tensor = to_tensor(array)
    assert tensor.dtype == torch.bfloat16
    assert (to_array(tensor) == array).all()


def test_global_state_is_read_without_change_and_includes_the_seed(
    rng: np.random.Generator,
) -> None:
    part, _ = loaded(rng)
    before = part.global_state()
    assert part.global_state() == before
    torch.rand(1)
    after = part.global_state()
    assert {name for name in before if before[name] != after[name]} == {"random state"}


def test_impossible_sizes_are_refused_by_the_implementation() -> None:
    with pytest.raises(AssertionError, match="divisible"):
        BACKEND.build("multi_head_attention", SIZES.but(heads=4))


def test_an_output_on_another_device_is_refused() -> None:
    recipe = Recipe(build=lambda sizes: nn.Identity(), call=lambda built, x: x.to("meta"))
    part = TorchBackend(name="away", title="", recipes={"generator": recipe}).build(
        "generator", SIZES
    )
    with pytest.raises(ValueError, match="lies on meta, and the inputs on cpu"):
        part(np.ones((1, 2)))


def test_a_mask_made_from_a_length_may_lie_on_another_device() -> None:
    recipe = Recipe(
        build=lambda sizes: nn.Identity(), call=lambda built, n: torch.ones(n, n).tril()
    )
    backend = TorchBackend(name="cpu mask", title="", recipes={"causal_mask": recipe})
    part = backend.build("causal_mask", SIZES, device="meta")
    assert np.array_equal(part(2), [[1, 0], [1, 1]])


class LessOne(nn.Module):
    """A norm whose gain is stored less one."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(sizes.d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise, without a bias."""
        return nn.functional.layer_norm(x, x.shape[-1:]) * (self.gamma + 1)


def test_gain_stored_minus_one_is_loaded_exported_and_differentiated() -> None:
    recipe = Recipe(LessOne, parameters={"gain": Place("gamma", plus=1.0)})
    backend = TorchBackend(
        name="less", title="less", choices={"norm_bias": "none"}, recipes={"layer_norm": recipe}
    )
    part = backend.build("layer_norm", Sizes(d_model=2))
    assert part.export()["gain"].tolist() == [1.0, 1.0]
    part.load({"gain": np.array([2.0, -0.5])})
    assert part.state()["gamma"].tolist() == [1.0, -1.5]
    assert part.export()["gain"].tolist() == [2.0, -0.5]
    gradient = part.vjp((np.array([[[-1.0, 1.0]]]),), np.ones((1, 1, 2))).parameters["gain"]
    np.testing.assert_allclose(gradient, [-1.0, 1.0], atol=1e-5)
