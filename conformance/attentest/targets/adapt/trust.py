"""Decides whether an inferred reading can be trusted with a verdict, or a question is due.

Numbers that an option of every choice explains need no trust. Where they contradict the spec, the
code is judged if its names and shapes allow one reading, or if a catalogued mistake explains the
numbers; otherwise the reading may be what is wrong.
"""

from collections.abc import Callable, Iterable, Mapping

from torch import nn

from attentest.analysis.diagnosis.variants import singles
from attentest.analysis.identify import MEASURED, NONE_FITS, Finding
from attentest.targets.adapt import probing
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.advice.causal_switches import demand_order
from attentest.targets.adapt.advice.dropped_masks import demand_kept_masks
from attentest.targets.adapt.advice.meant_otherwise import demand_meant
from attentest.targets.adapt.advice.other_activations import other_activation
from attentest.targets.adapt.advice.own_order import hides_later, mask_as_a_flag, mask_for_order
from attentest.targets.adapt.advice.plain_norms import of_each_number, rms_function
from attentest.targets.adapt.advice.shares import of_shares
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.encoders.idle_norms import gives, nothing_around, without_norm
from attentest.targets.adapt.layouts import CHANNELS_FIRST, GRID
from attentest.targets.adapt.parameters import routing
from attentest.targets.adapt.parameters.found import FoundTable, Observed
from attentest.targets.adapt.parameters.telling import few
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.trials.trial import places
from attentest.targets.adapt.probing import SIZES, Probe
from attentest.targets.adapt.reading import Reading, Uncovered, Windowed
from attentest.targets.adapt.recognise import (
    holds_where_rows_are_alike,
    recognised,
    scaled_rows,
    scaled_table,
)
from attentest.targets.adapt.unspecified import scores
from attentest.targets.adapt.unspecified.added_positions import demand_positions, demand_rows_alone
from attentest.targets.adapt.unspecified.branches import (
    LAYERS,
    STACKS,
    of_norms,
    of_stack,
    of_sums,
    of_two_kinds,
)
from attentest.targets.adapt.unspecified.contexts import unattended
from attentest.targets.adapt.unspecified.drawn import drawn_buffers
from attentest.targets.adapt.unspecified.key_heads import in_turn
from attentest.targets.adapt.unspecified.masked_queries import answers_without, masks_queries
from attentest.targets.adapt.unspecified.parallel import parallel
from attentest.targets.adapt.unspecified.parameters import demand_biases, in_use, of_others
from attentest.targets.adapt.unspecified.polarity import demand_polarity
from attentest.targets.adapt.unspecified.stack_ends import changed_around_layers
from attentest.targets.adapt.unspecified.windows import window
from attentest.targets.adapt.wrappers.core import adds_at_zero
from attentest.targets.adapt.wrappers.scaled import scaled_input
from attentest.targets.epsilons import inner_epsilon, is_without_weights, norm_of, other_epsilon
from attentest_spec import Choices, Table
from attentest_spec.choices import Value
from attentest_spec.torch import to_array

SECONDS = 3.0
"""Time limit for trying catalogued mistakes."""

_ANYWAY = "--anyway (in Python: anyway=True) judges it all the same"
_PAGE = f"What is judged, and what is not: docs/what-is-judged.md. {_ANYWAY}."
_UNATTENDED = (
    "{} has the numbers of multi_head_attention with one sequence as query, key and value, and not "
    "with another one as {}: if it attends to {}, this is a mistake. --give {}=None (in Python: "
    "given={{{!r}: None}}) judges it without. {}."
)
_HOLDS_NORMS = ("encoder_layer", "decoder_layer", "encoder", "decoder")
_MASKED = ("mask_fill", "fully_masked_row")
"""Choices that show nothing where nothing is masked."""

_MEASURED_UNDER_CAUSAL_MASKS = ("encoder_layer", "decoder_layer", "encoder")
"""Components whose numbers do not show that code is causal by itself."""


def question(
    code: Code,
    probe: Probe,
    adapter: Adapter,
    found: FoundTable,
    findings: Mapping[str, Finding],
    nearest: Callable[[], str],
    reading: Reading,
) -> str:
    """Return what is asked before a verdict, "" where the reading can be trusted with one.

    `nearest` says where the numbers leave the formula's, for a reading that gives others.
    Raises Uncovered where it can, and the spec has no place for the code.
    """
    demand_meant(code, probe, adapter, reading, fits=explained(findings))
    asked = _of_numbers(code, probe, adapter, found, findings, nearest, reading.choices)
    if not asked and explained(findings):  # numbers that are wrong without a mask need no meaning
        demand_kept_masks(code.name, code.thing, probe.built)
        demand_polarity(code, probe, adapter, reading)
        demand_order(code, probe, adapter, reading)
        demand_positions(code.name, probe, adapter, reading)
    return asked


def _of_numbers(
    code: Code,
    probe: Probe,
    adapter: Adapter,
    found: FoundTable,
    findings: Mapping[str, Finding],
    nearest: Callable[[], str],
    declared: Mapping[str, Value],
) -> str:
    """Return what is asked because of the numbers, "" for nothing; `declared` are choices."""
    routing.demand_sizes(code)
    demand_rows_alone(code.name, probe, adapter)
    seen = None if explained(findings) else found.observed
    if seen and (kinds := of_two_kinds(seen, code.component)):
        raise Uncovered(f"{code.name} is not judged as {code.component}: {kinds}. {_PAGE}")
    demand_biases(code.name, code.component, found)
    if left := _beside_the_table(code, probe, found):
        raise _without_a_place(code, left)
    if flag := mask_as_a_flag(probe, adapter):
        return (
            f"{code.name} is not judged with its mask: any {flag} hides later positions, whatever "
            f"its entries are. --give {flag}=None (in Python: given={{{flag!r}: None}}) judges it "
            f"without. {_ANYWAY}."
        )
    if own := mask_for_order(probe, adapter):
        return (
            f"{code.name} hides later positions only where no {own} is given: its caller may have "
            f"to put both into one mask, or it is a mistake. --give {own}=None (in Python: "
            f"given={{{own!r}: None}}) judges it without. {_ANYWAY}."
        )
    if not {*declared, *found.choices} & {"attention_window"} and (near := window(probe, adapter)):
        raise Windowed(
            f"{code.name} is not judged as {code.component}: a position sees {near}: a window, "
            f"which is not inferred. A backend can declare it (attention_window). {_PAGE}"
        )
    if own := masks_queries(probe, adapter):
        without = (
            f" --give {own}=None (in Python: given={{{own!r}: None}}) judges it without."
            if answers_without(probe, adapter)
            else f" It needs one: {own}=None raises an error."
        )
        raise Uncovered(
            f"{code.name} is not judged with its mask: {own} hides the rows of queries as well as "
            f"keys, and a hidden row has an output that the spec does not have.{without} {_ANYWAY}."
        )
    other = line = ""
    if code.component in _MEASURED_UNDER_CAUSAL_MASKS or not explained(findings):
        by_itself = found.choices.get("attention_causality") == "built-in"
        other = "" if found.mistake and by_itself else hides_later(probe, adapter)
        if other and code.component == "multi_head_attention":
            line = nearest()
    choices = {**found.choices, **_measured(findings)}
    known = Choices.of(dict(choices))
    norm = norm_of(probe, adapter, found, known)
    routing.demand_weights(code, adapter, found, choices, declared)
    if not other and not any("epsilon" in one for one in declared):
        is_measured = found.observed or explained(findings) or not code.is_module
        other = other_epsilon(norm, known) if norm and is_measured else ""
    other = other or rms_function(code.name, probe, adapter) or of_each_number(probe, adapter)
    other = other or in_turn(code, adapter, found, known) or of_stack(found, code.component)
    if not other and explained(findings):
        if extra := in_use(found, adapter) or of_others(found, adapter):
            raise _without_a_place(code, extra)
        own = unattended(found, adapter, known)
        return _UNATTENDED.format(code.name, own, own, own, own, _ANYWAY) if own else ""
    if not other and found.mistake:
        return ""
    if not other and found.observed and code.component in _HOLDS_NORMS:
        other = inner_epsilon(found.observed)
    other = other or other_activation(probe, adapter, found, known)
    if code.component == "positional_encoding" and not found.table:
        other = scaled_table(adapter, probe.built, SIZES) or scaled_input(probe, adapter)
    if code.component == "positional_encoding" and found.table:
        other = scaled_rows(probe, adapter) or _reserved_rows(found)
    later = _of_later_models(choices)
    if not other and found.observed and code.component == "encoder_layer":
        other = parallel(found.observed, code.name, later=later)
    if not other and found.observed:
        other = of_norms(found.observed, code.component)
    if not other and found.observed:
        other = changed_around_layers(found.observed, code.component)
    if not other and found.observed and code.component != routing.COMPONENT:
        other = recognised(found.observed, code.component, adapter, found.table, choices)
        line = nearest() if other and code.component == "multi_head_attention" else ""
    other = other or drawn_buffers(code, probe)
    if not other and (seen := scores.observed(probe, adapter, found)):
        other = _of_scores(seen, adapter, found.table, known)
    if not other and found.observed and code.component in (*LAYERS, *STACKS):
        other = _of_layers(code.component, adapter, found, known, later=later)
    if other:
        raise Uncovered(
            f"{code.name} is not judged as {code.component}: {other}. {apart(line)}{_PAGE}"
        )
    of_axes = _of_axes(adapter)
    sums = ["it adds its input to a part of its result"] * adds_at_zero(probe, adapter)
    doubts = [*found.doubts, *_unplaced(found), *of_axes, *sums, *of_shares(code, probe, adapter)]
    if not doubts or (not of_axes and confirmed(code.component, adapter, found, choices)):
        return ""
    if norm and not found.observed and is_without_weights(norm, known):
        raise Uncovered(
            f"{code.name} is not judged as {code.component}: it holds no weight, and has the "
            f"numbers of one whose weight changes nothing. {_PAGE}"
        )
    return (
        f"{code.name} was taken for {code.component}, and the reading may be wrong: "
        f"{'; '.join(doubts)}. {apart(nearest())}Name another component with --as, or name its "
        f"parts one by one. {_ANYWAY}."
    )


def _reserved_rows(found: FoundTable) -> str:
    """Return what is said of a table with more rows than positions, of which it is no option."""
    more = found.choices.get("position_offset", "none")
    if more == "none":
        return ""
    return f"its table has {more:g} rows more than positions, and does not begin behind them"


def _of_later_models(choices: Mapping[str, Value]) -> bool:
    """Say whether a layer is made of parts that the paper does not have."""
    later = {"norm_kind": "rms", "feed_forward_gate": "gated", "attention_rotary": "query-and-key"}
    return any(choices.get(name) == option for name, option in later.items())


def _of_layers(
    component: str, adapter: Adapter, found: FoundTable, known: Choices, *, later: bool
) -> str:
    """Return what a layer or a stack does that no mistake of the catalogue does, and designs do.

    It weighs its residual connections, or has other scores, which later models have.
    """
    seen = found.observed
    if seen is None or not found.table or not seen.run.samples:
        return ""
    weighed = of_sums(seen, component)
    if not (weighed or (later and component in LAYERS)):
        return ""
    with probing.undisturbed():
        by_design = weighed is not None and weighed.keep_input
        if not by_design and _catalogued(component, found.table, seen, known):
            return ""
        if weighed:
            return weighed.words
        alike = holds_where_rows_are_alike(seen, adapter, component, found.table, known)
    return "the weights of its attention are those of no option" if alike else ""


def _of_scores(seen: Observed, adapter: Adapter, table: Table, known: Choices) -> str:
    """Return what attention has in the place of its weights that is a design, "" for a mistake."""
    component = adapter.component
    for design in (scores.of_lengths, scores.of_other_formula, scores.of_turned_values):
        if other := design(seen, adapter, component, table, known):
            return other
    other = scores.without_softmax(seen, adapter, component, table, known)
    with probing.undisturbed():
        return "" if other and _catalogued(component, table, seen, known) else other


def _without_a_place(code: Code, names: Iterable[str]) -> Uncovered:
    return Uncovered(
        f"{code.name} is not judged as {code.component}: the spec has no place for its "
        f"parameters {few(names)}. {_PAGE}"
    )


def apart(sentence: str) -> str:
    """Return `sentence` with the space before the next one, "" for none."""
    return f"{sentence} " if sentence else ""


def explained(findings: Mapping[str, Finding]) -> bool:
    """Say whether an option of every choice explains the numbers.

    What is masked is measured only where they are explained, and may fit no option all the same.
    """
    unmasked = [one.status for name, one in findings.items() if name not in _MASKED]
    return NONE_FITS not in unmasked and MEASURED in [one.status for one in findings.values()]


def needs_several_heads(code: Code, found: FoundTable) -> bool:
    """Say whether `code` with one head is refused, or lacks parameters that are mapped."""
    seen = found.observed
    if seen is None or not found.table or "heads" not in code.known or seen.sizes.heads == 1:
        return False
    sizes = seen.sizes.but(heads=1)
    try:
        with probing.undisturbed():
            module = code.build(sizes)
    except Exception:  # code that a user wrote may raise anything
        return True
    own = {name: to_array(one) for name, one in module.named_parameters(remove_duplicate=False)}
    choices = Choices.of(dict(found.choices))
    several = places(code.component, found.table, seen.run.own, seen.sizes, choices)
    return not set(several) <= set(places(code.component, found.table, own, sizes, choices))


def _beside_the_table(code: Code, probe: Probe, found: FoundTable) -> list[str]:
    """Return the parameters that the spec has no place for, whatever the numbers are.

    Those of an encoding that cannot be a table of positions, and those of a mixture of experts that
    are used in training alone.
    """
    if code.component == "mixture_of_experts":
        return list(found.unplaced)
    held = isinstance(probe.built, nn.Module) and code.component == "positional_encoding"
    if not held or found.table:
        return []
    named = probe.built.named_parameters()
    return [name for name, one in named if one.numel() < 2 * SIZES.d_model]


def _unplaced(found: FoundTable) -> list[str]:
    return [f"the spec has no place for {few(found.unplaced)}"] * bool(found.unplaced)


def _of_axes(adapter: Adapter) -> list[str]:
    """Return the doubt that code of series or images may work along another axis.

    Rows that are alike show nothing of that; networks work on each position by itself.
    """
    other = adapter.component != "feed_forward" and adapter.layout in (*CHANNELS_FIRST, GRID)
    return [f"it was called with {adapter.layout.words}"] * other


def _measured(findings: Mapping[str, Finding]) -> dict[str, Value]:
    return {name: one.measured for name, one in findings.items() if one.measured is not None}


def confirmed(
    component: str, adapter: Adapter, found: FoundTable, choices: Mapping[str, Value]
) -> bool:
    """Say whether the numbers confirm the map, though not the formula.

    They do where it holds for rows that are alike, unless parameters that have no place in it could
    make the scores, and where a mistake of the catalogue, or a norm that is not called, gives them.
    """
    seen, declared = found.observed, Choices.of(dict(choices))
    if seen is None or not found.table or not seen.run.samples:
        return False
    with probing.undisturbed():
        alike = not found.unplaced and holds_where_rows_are_alike(
            seen, adapter, component, found.table, declared
        )
        return (
            alike
            or any(
                gives(one, component, found.table, seen)
                for one in without_norm(component, declared)
            )
            or _catalogued(component, found.table, seen, declared)
        )


def is_known_mistake(component: str, found: FoundTable, choices: Mapping[str, Value]) -> bool:
    """Say whether one mistake of the catalogue gives the numbers of code under its map.

    So does a sublayer that has neither a path around it nor a norm.
    """
    seen, declared = found.observed, Choices.of(dict(choices))
    if seen is None or not found.table or not seen.run.samples:
        return False
    with probing.undisturbed():
        bare = nothing_around(component, declared)
        return any(gives(one, component, found.table, seen) for one in bare) or _catalogued(
            component, found.table, seen, declared
        )


def _catalogued(component: str, table: Table, seen: Observed, declared: Choices) -> bool:
    """Say whether a mistake of the catalogue gives the numbers of the code."""
    clock = Clock(SECONDS)
    for variant in singles(declared, component, ""):
        if clock.rings():
            return False
        is_value = variant.faults and variant.faults[0].kind == "value"
        if is_value and gives(variant, component, table, seen):
            return True
    return False
