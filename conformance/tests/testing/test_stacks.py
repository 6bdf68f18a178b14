"""Stacks of layers and their modes: accepted and refused cases."""

from typing import Any

import numpy as np
import pytest
from layer_cases import (
    CAUSAL,
    PADDING,
    SIZES,
    X,
    case,
    seeded,
    subject_of,
    wrong_at,
)
from oracle_backend import Bend, OraclePart, claimed

from attentest.harness.errors import BackendError, Violation
from attentest.testing import layer_calls, stacks
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import count, tied
from attentest_spec.setting import Setting

# Layers on top of each other


@claimed()
def test_layers_own_what_is_loaded() -> None:
    for component, precision in (("encoder", "float32"), ("decoder", "float64")):
        one = case(component, precision=precision)
        stacks.layers_own_parameters(seeded(one), one)
        assert "exporting the parameters" in one.probe.subject.record.counterexample().steps


class OneLayer(OraclePart):
    """A stack whose layers are all the last one."""

    def load(self, parameters: Any) -> None:
        last = {name: values for name, values in parameters.items() if name.startswith("layers.1.")}
        first = {name.replace(".1.", ".0.", 1): values for name, values in last.items()}
        super().load({**parameters, **first})


class Stale(OraclePart):
    """A stack that calculates with what was loaded first."""

    def load(self, parameters: Any) -> None:
        super().load(parameters)
        self.first = getattr(self, "first", None) or self.parameters

    def answer(self, inputs: Any, method: str = "") -> Any:
        held, self.parameters = self.parameters, self.first
        found = super().answer(inputs, method)
        self.parameters = held
        return found


class Deaf(OraclePart):
    """A part that tells what it was born with, and calculates with what is loaded."""

    def export(self) -> Any:
        self.born = getattr(self, "born", None) or super().export()
        return self.born


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (OneLayer, "The output differs"),
        (Stale, "The output after loading other parameters differs"),
        (
            Deaf,
            "The parameter layers.0.self_attention.query.weight, exported after loading, differs",
        ),
    ],
)
@claimed()
def test_layers_that_share_parameters_are_reported(part: Any, message: str) -> None:
    one = case("encoder", part=part)
    with pytest.raises(Violation, match=f"^{message}"):
        stacks.layers_own_parameters(seeded(one), one)


@pytest.mark.parametrize("component", ["encoder", "decoder"])
@pytest.mark.parametrize("final", ["none", "present"])
@pytest.mark.parametrize("alone", [True, False])
@claimed()
def test_stack_is_its_layers_in_turn(component: str, final: str, alone: bool) -> None:
    provided = (component, f"{component}_layer") if alone else (component,)
    one = case(component, final_norm=final, components=provided)
    np.testing.assert_allclose(stacks.compose_layers(one), one.output(), rtol=1e-13)


@claimed()
def test_stack_is_composed_of_the_backends_own_layers() -> None:
    def bend(answer: Any, part: Any) -> Any:
        return answer + 1.0 if part.component == "encoder_layer" else answer

    one = case("encoder", bend, precision="float32")
    apart = stacks.compose_layers(one)
    assert apart.dtype == np.float64
    assert (apart == apart.astype(np.float32)).all()
    layer = one.probe.sizes
    x = X
    for number in range(layer.layers):
        own = Setting(layer, one.probe.subject.choices, one.probe.parameters)
        x = ORACLES["encoder_layer"](own.under(f"layers.{number}"), x, PADDING) + 1.0
    np.testing.assert_allclose(apart, x, rtol=1e-5)


@pytest.mark.parametrize("component", ["encoder", "decoder"])
@claimed()
def test_one_more_layer_adds_one_layers_parameters(component: str) -> None:
    for subject in (subject_of(), subject_of(layers=2)):
        stacks.layer_adds_its_parameters(subject, seeded(subject), component)
        assert "taking inventory" in subject.record.counterexample().steps


@pytest.mark.parametrize("forgotten", ["layers.1", "layers.1.self_attention_norm.gain"])
@claimed()
def test_layer_that_adds_fewer_parameters_is_reported(forgotten: str) -> None:
    class Short(OraclePart):
        def inventory(self) -> Any:
            listed = super().inventory()["parameters"]
            return {"parameters": {k: v for k, v in listed.items() if not k.startswith(forgotten)}}

    subject = subject_of(part=Short, layers=2)
    draw = seeded(subject)
    sizes = draw.sizes(layers=draw.layers(2) - 1)
    one = count("encoder", sizes, subject.choices)
    added = 0 if forgotten == "layers.1" else one - sizes.d_model
    text = rf"^Layer 2 adds {added} trained numbers to {one}; a layer has {one}\.$"
    with pytest.raises(Violation, match=text):
        stacks.layer_adds_its_parameters(subject, seeded(subject), "encoder")


class Shared(OraclePart):
    """A part whose tied parameters are one: the last that is loaded counts for all."""

    def load(self, parameters: Any) -> None:
        twins = tied(self.component, self.sizes, self.choices)
        roots = {root: parameters[name] for name, root in twins.items()}
        super().load({name: {**parameters, **roots}[twins.get(name, name)] for name in parameters})


class Refusing(OraclePart):
    """A part that refuses to load tied parameters that differ."""

    error: type[Exception] = ValueError

    def load(self, parameters: Any) -> None:
        twins = tied(self.component, self.sizes, self.choices)
        if any((parameters[name] != parameters[root]).any() for name, root in twins.items()):
            raise self.error("they are one")
        super().load(parameters)


class Failing(Refusing):
    """A part that fails in another way where tied parameters differ."""

    error = KeyError


@pytest.mark.parametrize("part", [Shared, Refusing])
@claimed()
def test_shared_norm_is_one(part: Any) -> None:
    one = case("encoder", part=part, norm_sharing="shared")
    kept = dict(one.probe.parameters)
    stacks.shares_one_norm(one)
    assert "exporting the parameters" in one.probe.subject.record.counterexample().steps
    assert all((one.probe.parameters[name] == kept[name]).all() for name in kept)
    assert all((one.probe.part.export()[name] == kept[name]).all() for name in kept)


def test_norms_that_are_not_shared_are_reported() -> None:
    text = r"^The layers\.\d\.\S+, declared one with layers\.0\.\S+, after loading differs"
    with pytest.raises(Violation, match=text):
        stacks.shares_one_norm(case("encoder", norm_sharing="shared"))
    with pytest.raises(BackendError, match="KeyError"):
        stacks.shares_one_norm(case("encoder", part=Failing, norm_sharing="shared"))


# Modes


def steady_but(call: int) -> Bend:
    return lambda answer, part: answer * (1 + 2.0**-50) if part.calls == call else answer


@claimed()
def test_deterministic_part_repeats_in_evaluation() -> None:
    stacks.repeats_in_evaluation(case())
    stacks.repeats_in_evaluation(
        case(bend=lambda answer, part: 2 * answer if part.training else answer)
    )
    stacks.repeats_in_evaluation(case(bend=steady_but(3)))


@pytest.mark.parametrize(
    ("bend", "message"),
    [
        (steady_but(2), "output of the second call"),
        (steady_but(4), "output in evaluation after training"),
    ],
)
@claimed()
def test_part_that_does_not_repeat_is_reported(bend: Bend, message: str) -> None:
    with pytest.raises(Violation, match=f"^The {message} differs"):
        stacks.repeats_in_evaluation(case(bend=bend))


LAST = ("self_attention.output", "feed_forward.outer")


def identity_but(positions: int) -> Bend:
    """Return what leaves the identity paths in training, but for a number of visible positions."""

    def bend(answer: Any, part: Any) -> Any:
        if not part.training:
            return answer
        bare = layer_calls.zero_maps(part.parameters, LAST)
        left = ORACLES["encoder_layer"](Setting(SIZES, part.choices, bare), X, CAUSAL)
        left.reshape(-1, 6)[:positions] = answer.reshape(-1, 6)[:positions]
        return left

    return bend


@pytest.mark.parametrize("positions", [0, 4])
@claimed()
def test_dropping_all_branches_leaves_the_identity_paths(positions: int) -> None:
    one = case(bend=identity_but(positions), mask=CAUSAL, sizes=SIZES.but(dropout=0.99))
    stacks.drops_all_branches(one, LAST)
    assert not one.probe.part.training
    assert one.probe.parameters["feed_forward.outer.weight"].any()


def test_branch_that_is_not_dropped_is_reported() -> None:
    one = case(bend=identity_but(5), mask=CAUSAL, sizes=SIZES.but(dropout=0.99))
    text = r"^At a dropout rate of 0\.99000, the identity paths are left at 3 of 8 positions\.$"
    with pytest.raises(Violation, match=text) as caught:
        stacks.drops_all_branches(one, LAST)
    assert caught.value.actual.shape == caught.value.expected.shape == X.shape
    with pytest.raises(Violation, match=r"^The output in evaluation differs"):
        stacks.drops_all_branches(case(bend=wrong_at(0)), LAST)
    with pytest.raises(Violation, match="0 of 5 positions"):
        stacks.drops_all_branches(case(), LAST)


def test_named_maps_are_silenced() -> None:
    given = {name: np.ones(2) for name in ("a.b.weight", "a.b.bias", "a.bc.weight", "a.c.bias")}
    found = layer_calls.zero_maps(given, ["a.b"])
    silent = {name: not values.any() for name, values in found.items()}
    assert silent == {"a.b.weight": True, "a.b.bias": True, "a.bc.weight": False, "a.c.bias": False}
