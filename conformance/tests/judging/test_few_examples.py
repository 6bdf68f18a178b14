"""One example of a formula alone: it shows the mistakes that an effort below 1 has to notice."""

import pytest
from oracle_backend import OracleBackend

from attentest.judging.bench import Bench
from attentest.judging.examples import try_examples
from attentest.judging.registry import checks

OF_HEADS = (  # the formulas of layers have more examples, most of which have several heads
    "multi_head_attention.formula",
    "encoder.formula",
    "decoder.formula",
    "model.formula",
    "language_model.formula",
)


@pytest.mark.parametrize("slug", OF_HEADS)
def test_single_example_of_a_formula_has_several_heads(slug):
    """Heads in a wrong order are right where there is one."""
    bench = Bench.for_status(OracleBackend(), effort=0.01)
    subject = bench.subject()
    try_examples(bench, checks()[slug], subject)
    heads = {step.question.probe.sizes.heads for step in subject.trace if step.question}
    assert max(heads) > 1
