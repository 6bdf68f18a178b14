"""Parameters that the spec has no place for, and that change what the code computes."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.parameters.behaviour import Sample
from attentest.targets.adapt.parameters.found import FoundTable
from attentest.targets.adapt.parameters.telling import few
from attentest.targets.adapt.parameters.trials.trial import places
from attentest.targets.adapt.probing import Probe, undisturbed
from attentest.targets.adapt.reading import Uncovered
from attentest.targets.adapt.ungiven import ungiven_of
from attentest.targets.deep_copies import copy_of
from attentest_spec import Choices
from attentest_spec.parameters import shapes
from attentest_spec.setting import Floats
from attentest_spec.torch import to_array


def in_use(found: FoundTable, adapter: Adapter) -> list[str]:
    """Return the parameters without a place in the spec on which the output depends.

    One that is initialised as 1 or 0 gives the numbers of the formula, and others once it is
    trained. A parameter that nothing depends on is a mistake, and is left out.
    """
    seen = found.observed
    if not found.unplaced or seen is None or not seen.run.samples:
        return []
    sample = seen.run.samples[0]
    with undisturbed():
        return [name for name in found.unplaced if _depends(seen.module, name, adapter, sample)]


def demand_weights(name: str, component: str, module: nn.Module) -> None:
    """Raise Uncovered for a norm that trains one number for all columns, which is not specified."""
    sizes = [one.numel() for one in module.parameters()]
    if component in ("layer_norm", "rms_norm") and sizes and max(sizes) == 1:
        raise Uncovered(SCALAR.format(name, component.replace("_", " ")))


SCALAR = (
    "{0} is not judged as {1}: what it trains is one number for all columns, as in a scale norm. "
    "What is judged, and what is not: docs/what-is-judged.md"
)


def demand_use_of_inherited(name: str, component: str, probe: Probe, adapter: Adapter) -> None:
    """Raise Uncovered for a norm that has its weights by torch's constructor, and uses none.

    It may be meant for norms without weights, which the constructor makes as well.
    """
    module = probe.built
    base = next((one for one in (nn.LayerNorm, nn.RMSNorm) if isinstance(module, one)), None)
    if base is None or type(module).__init__ is not base.__init__:
        return
    given = probe.given(adapter)
    changed = copy_of(module)
    with torch.no_grad():
        for one in changed.parameters():
            one.mul_(3.0).add_(1.0)
    before, after = (one.called(adapter, given) for one in (probe, replace(probe, built=changed)))
    if isinstance(before, Tensor) and isinstance(after, Tensor) and before.equal(after):
        raise Uncovered(INHERITED.format(name, component, base.__name__))


INHERITED = (
    "{0} is not judged as {1}: it has weights by the constructor of {2}, and uses none of them. "
    "--give elementwise_affine=False (in Python: given={{'elementwise_affine': False}}) judges it "
    "without"
)


def demand_biases(name: str, component: str, found: FoundTable) -> None:
    """Raise Uncovered for a module of which some maps have the bias of a choice, and others none.

    The spec has the biases of a choice in all of them or in none, but for those of attention that
    are often left out.
    """
    if missing := without_bias(component, found):
        raise Uncovered(SOME_BIASES.format(name, component, few(missing)))


def without_bias(component: str, found: FoundTable) -> list[str]:
    """Return the weights of maps without the bias of a choice, where others have it."""
    seen, table = found.observed, found.table
    if seen is None or not table:
        return []
    choices = Choices.of(dict(found.choices))
    held = places(component, table, seen.run.own, seen.sizes, choices)
    missing = [
        held[weight].name
        for one in shapes(component, seen.sizes, choices)
        for weight in (_weight_of(one, held),)
        if weight and one not in held
    ]
    return list(dict.fromkeys(missing))


def _weight_of(bias: str, held: Collection[str]) -> str:
    """Return the weight or gain that is `held` with `bias`, "" for none."""
    if not bias.endswith(".bias"):
        return ""
    start = bias.removesuffix("bias")
    return next((f"{start}{one}" for one in ("weight", "gain") if f"{start}{one}" in held), "")


SOME_BIASES = (
    "{0} is not judged as {1}: there is no bias with {2}, and there is one with other weights: the "
    "spec has the biases of a choice in all maps or in none. What is judged, and what is not: "
    "docs/what-is-judged.md"
)


def of_others(found: FoundTable, adapter: Adapter) -> list[str]:
    """Return the parameters without a place that may be those of an argument without a value.

    Only multi-head attention counts what it trains.
    """
    counted = adapter.component == "multi_head_attention"
    return list(found.unplaced) if counted and ungiven_of(adapter) else []


def _depends(module: nn.Module, name: str, adapter: Adapter, sample: Sample) -> bool:
    """Say whether another value of the parameter `name` gives another output."""
    changed = copy_of(module)
    with torch.no_grad():
        changed.get_parameter(name).mul_(3.0).add_(1.0)
    output = _output(changed, adapter, sample)
    return output is not None and not np.array_equal(output, sample.output)


def _output(module: nn.Module, adapter: Adapter, sample: Sample) -> Floats | None:
    """Return what `module` gives for the inputs of `sample`, None where it raises."""
    inputs = [None if one is None else torch.from_numpy(one.copy()) for one in sample.inputs]
    try:
        result = adapter(module, *inputs)
    except Exception:  # code that a user wrote may raise anything
        return None
    output = result[0] if isinstance(result, tuple | list) else result
    return to_array(output) if isinstance(output, Tensor) else None
