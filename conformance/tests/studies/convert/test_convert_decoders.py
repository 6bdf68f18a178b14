"""Weights of decoder-only models, carried between backends that turn other pairs of columns."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from converting import same
from folders import SUPPORT
from own import OWN
from reference_backends import sole

import attentest
from attentest.faults.reference_models import Fused, Plain, reference_backend
from attentest.interfaces.cli.main import main
from attentest.studies.convert import (
    Checkpoint,
    Conversion,
    NotConvertible,
    converted,
    read,
    write,
)
from attentest_spec import Backend, Choices, Sizes, registry
from attentest_spec.choices import Value
from attentest_spec.parameters import draw
from attentest_spec.profiles import PROFILES

SIZES = Sizes(
    d_model=64, heads=4, kv_heads=2, d_ff=20, layers=2, target_vocabulary=19, max_length=12
)
"""Heads of which a quarter has two pairs of columns, and half as many heads of keys."""

HEADS = {"heads": 4, "max_length": 12}
PROFILED = [name for name, one in PROFILES.items() if one.whole == "language_model"]
DECODERS = [name for name in OWN if "language_model" in registry.load(name).components]
OTHER = {"adjacent": "halves", "halves": "adjacent"}


def other(backend: Backend, **choices: Value) -> Backend:
    """Return a decoder-only model of packed weights with the choices of `backend` and others."""
    declared = {**backend.choices, **choices}
    return sole(reference_backend(Fused, declared, "other"), "language_model")


def plain(profile: str, **choices: Value) -> Backend:
    """Return a decoder-only model with the choices of a profile, and others."""
    declared = {**PROFILES[profile].choices, **choices}
    return sole(reference_backend(Plain, declared, "plain"), "language_model")


def turned_otherwise(backend: Backend) -> Backend:
    """Return such a model that turns the other pairs of columns, where any are turned."""
    own = Choices.of(backend.choices)
    turns = own.attention_rotary != "none"
    return other(backend, **({"rotary_pairs": OTHER[own.rotary_pairs]} if turns else {}))


def checkpoint(backend: Backend, precision: str = "float32") -> Checkpoint:
    """Return random weights of `backend`, as its users save them."""
    sizes = backend.limits.fitted(SIZES)
    part = backend.build("language_model", sizes, precision=precision)
    drawn = draw("language_model", sizes, Choices.of(backend.choices), np.random.default_rng(0))
    part.load({name: one.astype(precision) for name, one in drawn.items()})
    return Checkpoint(part.state())  # type: ignore[attr-defined]  # a part of torch is Stateful


def furthest(found: Conversion) -> float:
    (apart,) = found.effect.apart
    return apart.difference


def demand_both_ways(one: Backend, two: Backend) -> Conversion:
    """Demand a round trip that is exact bit by bit, and models that compute the same."""
    before = checkpoint(one)
    there = converted(before, one, two, sizes=HEADS)
    back = converted(there.checkpoint, two, one)
    assert same(back.checkpoint, before)
    room = 1e-12 if there.effect.precision == "float64" else 1e-5
    assert max(furthest(there), furthest(back)) < room
    return there


@pytest.mark.parametrize("profile", PROFILED)
def test_models_of_one_profile_are_carried_exactly_whichever_pairs_they_turn(profile: str) -> None:
    source = plain(profile)
    there = demand_both_ways(source, turned_otherwise(source))
    moved = "rows were reordered, for rotary pairs from halves to adjacent"
    turned = "attention_rotary" in PROFILES[profile].choices
    assert any(moved in one for one in there.notes) == turned


@pytest.mark.parametrize("name", DECODERS)
def test_own_decoders_are_carried_to_the_other_pairs_and_back(name: str) -> None:
    backend = registry.load(name)
    there = demand_both_ways(backend, turned_otherwise(backend))
    assert there.checkpoint.sizes["kv_heads"] == 2
    assert "layer: key.weight, query.weight" in there.notes[-1].replace("key.bias, ", "")


@pytest.mark.parametrize(
    "choices",
    [
        {"rotary_width": 0.5, "rotary_partial": "proportional"},
        {"query_key_norm": "whole-projection", "projection_bias": "present"},
    ],
)
def test_norms_biases_and_columns_that_are_not_turned_are_reordered(
    choices: dict[str, Value],
) -> None:
    llama = plain("llama", **choices)
    demand_both_ways(llama, turned_otherwise(llama))


def test_rows_that_are_not_reordered_give_other_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = plain("llama")
    carry = import_module("attentest.studies.convert.carry")
    monkeypatch.setattr(carry, "reordered", lambda parameters, *rest: (dict(parameters), []))
    there = converted(checkpoint(backend), backend, turned_otherwise(backend), sizes=HEADS)
    assert furthest(there) > 1e-2


def test_choices_that_change_no_number_of_the_model_are_carried() -> None:
    backend = plain("llama")
    target = other(
        backend,
        softmax_arithmetic="float32",
        rotary_arithmetic="float32",
        rms_cast="after-weight",
        cache_update="in-place",
        router_scores="sigmoid",
    )
    there = converted(checkpoint(backend), backend, target, sizes=HEADS)
    assert not there.lost
    assert 0 < furthest(there) < 1e-5  # of single precision


def test_choices_that_change_numbers_are_refused_by_their_names() -> None:
    source = plain("llama", rotary_base=5e5)
    target = plain("gemma2", rotary_pairs="adjacent", routing_scale=2.5, cache_update="in-place")
    with pytest.raises(NotConvertible) as refusal:
        converted(checkpoint(source), source, target, sizes=HEADS)
    for named in ("rotary_base (500000.0 and 10000", "logit_cap (none and 30.0)", "rms_epsilon"):
        assert named in str(refusal.value)
    for silent in ("cache_update", "routing_scale", "rotary_pairs"):
        assert silent not in str(refusal.value)


@pytest.mark.parametrize(("scale", "carried"), [(0.25, True), (0.2, False)])
def test_a_scale_by_number_is_that_of_heads_as_wide(scale: float, *, carried: bool) -> None:
    backend = plain("llama")
    scaled = other(backend, score_scale=scale)  # a head has 16 columns
    if carried:
        demand_both_ways(backend, scaled)
        return
    with pytest.raises(NotConvertible, match=r"score_scale \(inverse-sqrt-e and 0\.2\)"):
        converted(checkpoint(backend), backend, scaled, sizes=HEADS)


def test_decoder_only_and_other_models_are_not_carried_to_each_other() -> None:
    source, target = plain("llama"), sole(reference_backend(Plain, {}, "pair"), "model")
    with pytest.raises(NotConvertible, match="plain provides language_model and pair model"):
        converted(checkpoint(source), source, target, sizes=HEADS)


@pytest.mark.proof
def test_the_command_reads_the_model_of_a_file(tmp_path: Path) -> None:
    """Its inner width is two thirds of four times the width, of which nothing is given."""
    source = f"{SUPPORT / 'wild_language_models' / 'llama.py'}:Transformer"
    backend = attentest.adapted(source)
    assert isinstance(backend, Backend)
    before, out, target = checkpoint(backend), tmp_path / "out.safetensors", tmp_path / "target.py"
    write(tmp_path / "in.safetensors", before)
    choices = {**backend.choices, "rotary_pairs": "halves"}
    target.write_text(
        "from attentest.faults.reference_models import Fused, reference_backend\n"
        f"backend = reference_backend(Fused, {choices!r})\n"
    )
    words = ["convert", str(tmp_path / "in.safetensors"), str(out), "--from", source]
    result = CliRunner().invoke(main, [*words, "--to", str(target), "--sizes", "heads=4"])
    assert result.exit_code == 0, result.output
    assert "rows were reordered, for rotary pairs from adjacent to halves" in result.output
    back = converted(read(out), other(backend, **choices), backend, sizes={"max_length": 12})
    assert same(back.checkpoint, before)
