"""Question about whole models that return shares where their files compute a cross-entropy."""

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.models.inferring import probe_of
from attentest.targets.neighbours import bodies_naming
from attentest.targets.whole import AdaptedWhole

_OF_LOGITS = ("CrossEntropyLoss", "cross_entropy")
_OF_SHARES = ("NLLLoss", "nll_loss", "KLDivLoss", "kl_div")
"""The losses of shares, or of their logarithms."""

_QUESTION = (
    "{} returns shares, as a softmax makes them, and the code around it gives what a model returns "
    "to {} (line {}), which takes logits and computes a softmax itself. Of both, the loss of a "
    "wrong token is hardly more than that of a right one: return the logits. --choice "
    "output=probabilities (in Python: choices={{'output': 'probabilities'}}) judges it as it is."
)


def demand_logits(
    name: str, thing: Callable[..., Any], made: AdaptedWhole, reading: Reading
) -> None:
    """Raise Unclear where a model that returns shares is trained with a loss that takes logits.

    That is one around it, where no other one is; in training, too, it returns shares.
    """
    if (
        made.choices.get("output", "probabilities") != "probabilities"
        or "output" in reading.choices
    ):
        return
    nodes = [one for body in _bodies(thing) for top in body for one in ast.walk(top)]
    called = [one for one in nodes if isinstance(one, ast.Call)]
    names = [(getattr(one.func, "attr", getattr(one.func, "id", "")), one) for one in called]
    losses = [(own, one.lineno) for own, one in names if own in _OF_LOGITS]
    are_taken = any(own in _OF_SHARES or (own == "log" and _of_shares(one)) for own, one in names)
    if losses and not are_taken and _is_so_in_training(made):
        own, line = losses[0]
        raise Unclear(_QUESTION.format(name, own, line))


def _of_shares(log: ast.Call) -> bool:
    """Say whether a logarithm is that of something else than a number, as of 10000."""
    return not any(isinstance(one, ast.Constant) for one in ast.walk(log))


def _bodies(thing: Any) -> Iterator[list[ast.stmt]]:
    """Yield the statements of the file of a class, or function, and of those that import it."""
    if isinstance(thing, type):
        yield from bodies_naming(thing)
        return
    file = getattr(sys.modules.get(thing.__module__), "__file__", None) or ""
    try:
        yield ast.parse(Path(file).read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return


def _is_so_in_training(made: AdaptedWhole) -> bool:
    """Say whether a call in training returns numbers that add up to 1, too."""
    adapter: Any = made.adapter
    same = DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
    probe = probe_of(adapter.building, same)
    probe.model.train()
    answer = probe.called(adapter.inferred.call.compiled(), *probe.tokens)
    if not isinstance(answer, Tensor) or bool((answer < 0).any()):
        return False
    sums = answer.sum(-1)
    return torch.allclose(sums, torch.ones_like(sums))
