"""Optional arguments that get no value are named on the first screen; masks by other names."""

import math

import pytest
import torch
from folders import SUPPORT
from torch import Tensor

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Unclear


def attention(query, key, value, mask=None, segments=None, dropout_p=0.0, return_weights=False):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    if segments is not None:
        scores = scores * segments
    return scores.softmax(-1) @ value


def masked_as(name: str, hidden: str) -> object:
    """Return attention whose mask is the argument `name`, and hides where `hidden` is True."""
    space: dict[str, object] = {"torch": torch}
    exec(
        f"def attention(query, key, value, {name}=None):\n"
        f"    scores = query @ key.mT * query.shape[-1] ** -0.5\n"
        f"    if {name} is not None:\n"
        f"        scores = scores.masked_fill({hidden}, -torch.inf)\n"
        f"    return scores.softmax(-1) @ value\n",
        space,
    )
    return space["attention"]


def test_argument_that_gets_no_value_is_named_in_the_summary() -> None:
    read = attentest.adapted(attention)
    assert "not given: segments; nothing that depends on it is judged" in read.summary  # type: ignore[attr-defined]
    assert "dropout_p" not in read.summary  # type: ignore[attr-defined]
    assert "return_weights" not in read.summary  # type: ignore[attr-defined]


def test_argument_that_the_user_gives_is_not_named() -> None:
    read = attentest.adapted(attention, given={"segments": None})
    assert "not given" not in read.summary  # type: ignore[attr-defined]


def test_flag_that_is_off_is_named() -> None:
    read = attentest.adapted(torch.nn.functional.scaled_dot_product_attention)
    assert "not given: is_causal, scale, enable_gqa; nothing" in read.summary  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["allow", "ok", "seen_by"])
def test_mask_by_another_name_is_read_where_a_call_shows_it(name: str) -> None:
    read = attentest.adapted(masked_as(name, f"~{name}"), "attention")  # type: ignore[arg-type]
    assert f"mask={name}" in read.summary  # type: ignore[attr-defined]
    verdict = judge(Bench.for_status(read, effort=0.2), "attention.masked-keys-ignored")
    assert verdict.status.value == "pass"


def test_mask_against_its_name_is_a_question_whose_advice_works() -> None:
    wrong = masked_as("allow", "allow")
    with pytest.raises(Unclear, match="--set mask=keep or --set mask=blocks"):
        attentest.adapted(wrong, "attention")  # type: ignore[arg-type]
    found = {}
    for meaning in ("keep", "blocks"):
        read = attentest.adapted(wrong, "attention", mask=meaning)  # type: ignore[arg-type]
        found[meaning] = judge(Bench.for_status(read), "attention.masked-keys-ignored").status.value
    assert found == {"keep": "violation", "blocks": "pass"}


def test_mask_that_no_form_fits_is_not_asked_for_its_meaning() -> None:
    def attention(query: Tensor, key: Tensor, value: Tensor, mask: object = None) -> Tensor:
        scores = query @ key.mT * query.shape[-1] ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask.keep, -torch.inf)  # type: ignore[attr-defined]
        return scores.softmax(-1) @ value

    with pytest.raises(Unclear, match="No form of mask") as failure:
        attentest.adapted(attention)
    assert "--set" not in str(failure.value)
    read = attentest.adapted(attention, given={"mask": None})
    assert judge(Bench.for_status(read, effort=0.2), "attention.formula").status.value == "pass"


@pytest.mark.proof
def test_arguments_of_whole_models_are_named() -> None:
    read = attentest.adapted(f"{SUPPORT}/wild_models/annotated.py:make_model")
    assert "not given" not in read.summary  # type: ignore[attr-defined]
