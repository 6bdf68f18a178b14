"""The line at which the numbers of JAX code first leave the reference's."""

from pathlib import Path

import numpy as np
import pytest
from line_corpus import JAX, Mistake, mistakes

pytest.importorskip("jax")

from attentest import adapted
from attentest.analysis.lines import cases
from attentest.analysis.lines.locate import locate
from attentest.judging.bench import Bench
from attentest.results.verdict import Location

MISTAKES = {one.slug: one for one in mistakes(JAX)}


def located(mistake: Mistake, folder: Path) -> Location:
    """Return the line of the first wrong call of the wrong twin; nothing is judged."""
    backend = adapted(mistake.write(folder))
    subject = Bench(backend).subject()
    (component,) = backend.components
    wrong = next(cases.own_cases(subject, component))
    with np.errstate(all="ignore"):
        location = locate(subject, wrong.steps, {})
    assert location is not None
    return location


@pytest.mark.proof
@pytest.mark.parametrize(
    ("slug", "computed"),
    [
        ("jax-scale-missing", "scores without a division by sqrt(d_k)"),
        ("jax-compiled-softmax-over-queries", ""),
        ("jax-one-head-scale-twice", "scores / d_k, where d_k = 8"),
        ("jax-stream-scale-of-width", "query / d_k, where d_k = 8"),
        ("jax-key-of-the-query-weights", "query.weight in the place of key.weight"),
    ],
)
def test_line_of_jax_code_is_named_and_confirmed(slug: str, computed: str, tmp_path: Path) -> None:
    mistake = MISTAKES[slug]
    location = located(mistake, tmp_path)
    assert Path(location.file) == tmp_path / mistake.file
    assert location.line in mistake.accepted
    assert location.confirmed
    assert computed in location.computed


@pytest.mark.proof
def test_mask_that_may_be_meant_otherwise_is_suspected(tmp_path: Path) -> None:
    mistake = MISTAKES["jax-bias-of-the-seen"]
    location = located(mistake, tmp_path)
    assert location.line in mistake.accepted
    assert not location.confirmed


@pytest.mark.parametrize("name", ["einsum", "mapped", "streamed"])
def test_sound_jax_code_has_no_line(name: str) -> None:
    subject = Bench(adapted(f"{JAX}/attentions.py:{name}")).subject()
    assert list(cases.own_cases(subject, "attention")) == []
