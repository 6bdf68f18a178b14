"""The kind of a whole model's output, and the scale of its logits, by one probing call."""

import torch

from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.models.inferring import Inferred, probe_of
from attentest.targets.models.logits import scale_of_logits
from attentest.targets.models.trials import Building
from attentest_spec.choices import Value
from attentest_spec.mapping import Table


def kind_of_output(built: Building, inferred: Inferred) -> dict[str, Value]:
    """Return that the output is logits where it has numbers of both signs, logarithms of shares.

    That holds for wrong numbers, too, of which no other choice can be measured; nothing otherwise.
    """
    probe = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    answer = probe.called(inferred.call.compiled(), *probe.tokens)
    if not isinstance(answer, torch.Tensor):
        return {}
    if (answer < 0).any() and (answer > 0).any():
        return {"output": "logits"}
    sums = answer.exp().sum(-1)
    shares = bool((answer <= 0).all()) and torch.allclose(sums, torch.ones_like(sums))
    return {"output": "log-probabilities"} if shares else {}


def logits_scaled(built: Building, inferred: Inferred, table: Table) -> dict[str, Value]:
    """Return the scale of the logits that a probing call shows, {} for none."""
    probe = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    return scale_of_logits(probe, inferred.call.compiled(), table)
