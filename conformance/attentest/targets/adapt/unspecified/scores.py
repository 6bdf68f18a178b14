"""Attention of other designs: cosines for scores, no softmax, values that are turned.

All have published forms that are correct, and that no option of the spec describes. Laws show them,
in attention by itself as in layers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.analysis.diagnosis.variants import Variant
from attentest.faults import Fault, faults
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.encoders.idle_norms import gives
from attentest.targets.adapt.parameters.behaviour import Run, Sample
from attentest.targets.adapt.parameters.found import FoundTable, Observed
from attentest.targets.adapt.parameters.trials.open_choices import LOOSE
from attentest.targets.adapt.parameters.trials.shown import TURNED
from attentest.targets.adapt.parameters.trials.trial import places
from attentest.targets.adapt.probing import SIZES, Probe, undisturbed
from attentest.targets.adapt.recognise import answer
from attentest.targets.deep_copies import copy_of
from attentest.targets.kernels import KernelWatch
from attentest_spec import Choices, Sizes, Table
from attentest_spec.choices import Value
from attentest_spec.mapping import Place
from attentest_spec.setting import Floats
from attentest_spec.torch import to_array

_MADE_OF_IT = ("multi_head_attention", "encoder_layer", "decoder_layer", "encoder", "decoder")
ATTENDING = ("attention", *_MADE_OF_IT)
"""The components of which every output depends on attention."""


def observed(probe: Probe, adapter: Adapter, found: FoundTable) -> Observed | None:
    """Return what was seen of code with attention, None for other code, and where a map is missing.

    Attention alone has no parameters, and is called for it.
    """
    if adapter.component in _MADE_OF_IT and found.table:
        return found.observed if found.observed and found.observed.run.samples else None
    if adapter.component != "attention" or found.observed:
        return None
    given = probe.given(adapter)
    output = probe.called(adapter, given)
    if isinstance(output, str):
        return None
    inputs = tuple(None if one is None else to_array(one) for one in given.values())
    return Observed(probe.built, SIZES, Run({}, samples=[Sample(inputs, to_array(output))]))


_OF_LENGTHS = (
    "its scores do not depend on the lengths of its queries, and do on their directions: queries "
    "are normed before they are compared, as in cosine attention"
)
_LONGER, _REVERSED = 4.0, -1.0
"""Factors of queries that change their lengths alone, and their directions alone."""


def of_lengths(
    seen: Observed, call: Callable[..., Any], component: str, table: Table, known: Choices
) -> str:
    """Recognise scores of queries that are divided by their lengths, "" for others.

    Norms of queries and keys that have weights are a choice of the spec, and are not meant.
    """
    if "query_norm.gain" in table:
        return ""
    found = places(component, table, seen.run.own, seen.sizes, known)
    with undisturbed():
        for queries in _queries(found) if table else [[]]:
            plain, longer, reverse = (
                _scaled(seen, call, queries, _left_over(seen, found), by)
                for by in (1.0, _LONGER, _REVERSED)
            )
            if _is_near(plain, longer) and reverse is not None and not _is_near(plain, reverse):
                return _OF_LENGTHS
    return ""


def _queries(found: Mapping[str, Place]) -> Iterator[list[Place]]:
    """Yield the parameters that make the queries of each attention."""
    for name, place in found.items():
        start, is_query, _ = name.rpartition("query.weight")
        if is_query:
            bias = found.get(f"{start}query.bias")
            yield [place, *([bias] if bias else [])]


def _left_over(seen: Observed, found: Mapping[str, Place]) -> list[str]:
    """Return the biases that have no place: they may be added to queries."""
    placed = {name for place in found.values() for name in place.names(seen.run.own)}
    return [name for name in seen.run.own if "bias" in name and name not in placed]


def _scaled(
    seen: Observed, call: Callable[..., Any], scaled: list[Place], zero: list[str], factor: float
) -> Floats | None:
    """Return the output for the first sample with queries times `factor`, None for none.

    They are made by the parameters `scaled`, or are the first input where there are none. Those
    called `zero` are 0.
    """
    query, *rest = seen.run.samples[0].inputs
    module = seen.module
    if scaled:
        module = copy_of(module)
        if not _multiplied(module, seen.sizes, scaled, zero, factor):
            return None
    elif query is not None:
        query = query * factor
    output: Floats | None = answer(call, module, [query, *rest])
    return output


def _multiplied(
    module: nn.Module, sizes: Sizes, scaled: list[Place], zero: list[str], factor: float
) -> bool:
    """Multiply the parameters `scaled` by `factor`, set `zero` to 0, and say whether it can."""
    own = dict(module.named_parameters(remove_duplicate=False))
    try:
        with torch.no_grad():
            for name in zero:
                own[name].zero_()
            for place in scaled:
                for name in place.names(own):
                    place.view(own[name], sizes.heads, sizes.kv_heads).mul_(factor)
    except Exception:  # a layout may be no view
        return False
    return True


_WITHOUT_SOFTMAX = (
    "it computes no softmax, and no exponential: its weights are those of another attention, such "
    "as linear, sigmoid or ReLU attention"
)


_WITHOUT_WEIGHTS = (
    "it computes no weight for each query and key: its exponentials are those of queries and of "
    "keys alone, as in linear attention"
)


def without_softmax(
    seen: Observed, call: Callable[..., Any], component: str, table: Table, known: Choices
) -> str:
    """Recognise attention that carries out no operation that a softmax is made of.

    Scores that are used as they are instead of weights are a mistake: the softmax was forgotten.
    So is an output that depends on queries, keys or values alone. Operations of arrays
    are not seen.
    """
    with undisturbed():
        if not _depends_on_all(seen, call):
            return ""
        with _Operations() as operations:
            output = answer(call, seen.module, seen.run.samples[0].inputs)
        if output is None or not operations.multiplies:
            return ""
        if operations.may_be_softmax:
            return _WITHOUT_WEIGHTS if _is_linear(seen, call) else ""
        forgotten = (Variant({}, several, known) for several in _forgotten())
        is_mistake = any(gives(one, component, table, seen) for one in forgotten)
    return "" if is_mistake else _WITHOUT_SOFTMAX


def _is_linear(seen: Observed, call: Callable[..., Any]) -> bool:
    """Say whether no exponential has a number for each query and key, and none is of a loop."""
    query, *rest = seen.run.samples[0].inputs
    if query is None:
        return False
    # Twice as many keys are no other size by chance.
    longer = [
        one if one is None or one.dtype.kind != "f" else np.repeat(one, 2, -2) for one in rest
    ]
    with _Operations() as operations:
        output = answer(call, seen.module, [query, *longer])
    queries = query.shape[-2]
    keys = [queries, *(one.shape[-2] for one in longer[:1] if one is not None)]
    shapes = operations.exponentials
    of_pairs = any(_has_axes(one, queries, each) for one in shapes for each in keys)
    is_plain = output is not None and not operations.is_whole
    return is_plain and not of_pairs and 0 < len(shapes) < queries


def _has_axes(shape: Sequence[int], queries: int, keys: int) -> bool:
    """Say whether a shape has an axis of keys, and one of queries, alone or with others."""
    if keys not in shape:
        return False
    at = list(shape).index(keys)
    return any(one % queries == 0 for one in (*shape[:at], *shape[at + 1 :]))


def _depends_on_all(seen: Observed, call: Callable[..., Any]) -> bool:
    """Say whether the output for the first sample depends on each of its sequences."""
    given = seen.run.samples[0].inputs
    plain = answer(call, seen.module, given)
    for number, one in enumerate(given):
        if one is not None and one.dtype.kind == "f":
            changed = [*given[:number], np.roll(one, 1, axis=-1), *given[number + 1 :]]
            if _is_near(plain, answer(call, seen.module, changed)):
                return False
    return True


_EXPONENTIALS = ("exp", "exp_", "exp2", "exp2_", "expm1", "logsumexp", "logaddexp")
"""Operations that a softmax may be made of; powers whose exponents are tensors are others."""

_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "mv", "dot", "mul", "mul_")
"""Operations that queries and keys are multiplied by."""


class _Operations(KernelWatch):  # type: ignore[no-untyped-call]
    """Notes whether an operation is a softmax, or may be a part of one, as every kernel may.

    `exponentials` are the shapes of what such operations make, and `is_whole` says that one of them
    may be all of attention.
    """

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.may_be_softmax = self.multiplies = self.is_whole = False
        self.exponentials: list[tuple[int, ...]] = []

    def seen(self, func: Any, given: Sequence[Tensor], made: Sequence[Tensor]) -> None:
        """Note the name of an operation; its tensors may have any shape."""
        name = func._overloadpacket.__name__
        raised = name == "pow" and func._overloadname != "Tensor_Scalar"
        fused = "softmax" in name or "attention" in name
        self.may_be_softmax |= raised or fused or name in _EXPONENTIALS
        self.is_whole |= "attention" in name
        if (raised or fused or name in _EXPONENTIALS) and made:
            self.exponentials.append(tuple(made[0].shape))
        self.multiplies |= name in _PRODUCTS

    def computed_by_kernels(self, numbers: Sequence[Tensor]) -> None:
        """Note that numbers of any shape may have come from a softmax."""
        self.may_be_softmax |= bool(numbers)
        self.is_whole |= bool(numbers)


@cache
def _forgotten() -> tuple[tuple[Fault, ...], ...]:
    """Return the mistakes that scores are the weights, scaled or not."""
    fault = Fault(
        slug="softmax-not-called",
        clause="attention.formula",
        wrong="Scores are used as the weights: no softmax is called.",
        effect="Weights may be negative, and their sum grows with the number of keys.",
        origin="own",
        seam="softmax",
        override=lambda self, scores: scores,
        components=ATTENDING,
    )
    return (fault,), (fault, faults()["attention.scale-missing"])


def _apart(query: Tensor, key: Tensor) -> Tensor:
    return torch.cdist(query, key, compute_mode="donot_use_mm_for_euclid_dist")


_OTHER: Mapping[str, tuple[str, Callable[..., Tensor], str]] = {
    "zero-key": (
        "softmax",
        lambda self, scores: functional.pad(scores, (0, 1)).softmax(-1)[..., :-1],
        "a part of its weights goes to a key of zeros: softmax plus one, add_zero_attn of torch",
    ),
    "squared-distances": (
        "scores",
        lambda self, query, key, factor: -_apart(query, key).square() * factor,
        "its scores are squared distances of queries and keys",
    ),
    "distances": (
        "scores",
        lambda self, query, key, factor: -_apart(query, key) * factor,
        "its scores are distances of queries and keys",
    ),
}
"""Designs of attention: what they replace, by what, and what is said of them."""


def of_other_formula(
    seen: Observed, call: Callable[..., Any], component: str, table: Table, known: Choices
) -> str:
    """Recognise scores or weights of another formula that has been published, "" for others."""
    with undisturbed():
        for name, (seam, override, sentence) in _OTHER.items():
            design = Fault(
                slug=name,
                clause="attention.formula",
                wrong=sentence,
                effect="The weights are others.",
                origin="own",
                seam=seam,
                override=override,
                components=ATTENDING,
            )
            if gives(Variant({}, (design,), known), component, table, seen):
                return sentence
    return ""


_OF_VALUES = (
    "it turns its values by rotary positions, and not its queries and keys alone, as RoFormer with "
    "rotary_value and ProGen do"
)
_WIDTHS: tuple[Value, ...] = ("whole", 0.5, 0.25)
"""The parts of a head that are turned in published models."""


def of_turned_values(
    seen: Observed, call: Callable[..., Any], component: str, table: Table, known: Choices
) -> str:
    """Recognise attention whose values are turned by rotary positions too, "" for others.

    Where all rows are alike, the outputs of all positions are, unless values depend on these.
    """
    if component not in ("multi_head_attention", "encoder_layer"):
        return ""
    *rows, mask = seen.run.samples[0].inputs
    alike = [np.repeat(one[:, :1], one.shape[1], axis=1) for one in rows if one is not None]
    fault = faults()["multi_head_attention.values-turned-too"]
    with undisturbed():
        output = answer(call, seen.module, (*alike, mask))
        if output is None or np.ptp(output, axis=1).max() <= LOOSE * np.abs(output).max():
            return ""
        for positions, width in product(TURNED, _WIDTHS):
            own = known.but(**positions, rotary_width=width, query_alignment="start")
            if gives(Variant({}, (fault,), own), component, table, seen):
                return _OF_VALUES
    return ""


def _is_near(one: Floats | None, other: Floats | None) -> bool:
    if one is None or other is None or one.shape != other.shape:
        return False
    return bool(np.abs(one - other).max() <= LOOSE * np.abs(one).max())
