"""Checks of the chapter `model`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from attentest import laws
from attentest.cases import HALVES, same_precision
from attentest.checks import check
from attentest.compare import (
    as_floats,
    distance,
    equal,
    error_bound,
    finite,
    holds,
    largest,
    matches,
    rounding,
    same_shape,
)
from attentest.draw import Draw
from attentest.footprint import leaves_the_process
from attentest.gradients import agrees_with_differences, every_parameter_reached, gradient_of
from attentest.outcome import Absent, BackendError
from attentest.refusal import refused
from attentest.subject import Probe, Subject, cast
from attentest_spec import Sizes
from attentest_spec.parameters import count, tied
from attentest_spec.parameters import draw as draw_parameters
from attentest_spec.setting import Array, Floats


@dataclass(frozen=True)
class Case:
    """One call of the model: the part, the source and the target."""

    probe: Probe
    source: Array
    target: Array

    @property
    def inputs(self) -> tuple[Array, Array]:
        """The inputs in the order of the call."""
        return self.source, self.target

    @property
    def sizes(self) -> Sizes:
        """The sizes that the model was built at."""
        return self.probe.sizes

    @property
    def real(self) -> Array:
        """The steps (B, T) that are no pad: what stands at the others is nobody's business."""
        return np.asarray(self.target != self.sizes.target_pad)

    def output(self) -> Array:
        """Call the model; see :func:`answer`."""
        return answer(self.probe, self.source, self.target)

    def but(self, **changes: Any) -> "Case":
        """Return the case with another source, target or part."""
        return replace(self, **changes)


def drawn(
    subject: Subject,
    draw: Draw,
    *,
    batch: int = 0,
    lengths: tuple[int, int] | None = None,
    loaded: bool = True,
    precision: str = "",
    **fixed: Any,
) -> Case:
    """Draw a model of one layer, unless told otherwise, and a call of it with ragged padding."""
    sizes = model_sizes(subject, draw, **fixed)
    parameters = draw.parameters("model", sizes, precision=precision) if loaded else None
    samples = batch or draw.batch()
    lengths = lengths or (draw.length(2), draw.length(2))
    return Case(
        subject.part("model", sizes, parameters=parameters, precision=precision),
        draw.source(samples, lengths[0], sizes),
        draw.target(samples, lengths[1], sizes),
    )


def model_sizes(subject: Subject, draw: Draw, **fixed: Any) -> Sizes:
    """Draw the sizes of a model: small, and wide enough for a norm to tell rows apart."""
    longest = subject.limits.length or 8
    chosen = {"layers": 1, "head_width": draw.choose((3, 4)), "max_length": min(longest, 8)}
    return draw.sizes(**{**chosen, **fixed})


def answer(probe: Probe, source: Array, target: Array) -> Array:
    """Call the model, and demand an output of the right shape that tells tokens apart."""
    output = probe.output(source, target)
    same_shape(output, (*target.shape, probe.sizes.target_vocabulary))
    real = as_floats(output[target != probe.sizes.target_pad])
    finite(real)
    spread = float(np.ptp(real, axis=-1).max())
    holds(spread > 0, "The output is the same for every token of the vocabulary.", actual=output)
    return output


def alike(
    case: Case, actual: Array, expected: Array, *, what: str, rows: Array | None = None
) -> None:
    """Demand that two answers of the backend, one of them to `case`, agree."""
    laws.alike(case.probe, *case.inputs, actual=actual, expected=expected, what=what, rows=rows)


def changed(before: Case, after: Case, first: Array, second: Array, rows: Array, why: str) -> None:
    """Demand that the answers to two cases differ in `rows`, where rounding cannot hide it."""
    one, other = (as_floats(case.probe.expected(*case.inputs)) for case in (before, after))
    noise = error_bound(before.probe, before.inputs, one)
    if distance(one[rows], other[rows]) > 100 * noise:
        holds(distance(first[rows], second[rows]) > noise, f"The output is the same {why}.")


def exchanged(draw: Draw, tokens: Array, vocabulary: int, pad: int) -> Array:
    """Return other real tokens for `tokens`, pads left where they are."""
    others = [
        draw.rng.choice([one for one in range(vocabulary) if one not in (token, pad)])
        for token in tokens.flat
    ]
    return np.where(tokens == pad, pad, np.reshape(others, tokens.shape))


def require_hiding(subject: Subject) -> None:
    """End as absent where the declared mask lets masked keys through by its nature."""
    fill = subject.choices.mask_fill
    if fill != "exact" and float(fill) > -1e3:
        raise Absent(f"{subject.name} declares a mask fill of {fill}, and scores can reach it")


def require_dropout(subject: Subject) -> None:
    """End as absent where there is no dropout."""
    if not subject.limits.dropout:
        raise Absent(f"{subject.name} has no dropout")


def unlike(case: Case, draw: Draw) -> dict[str, Floats]:
    """Draw parameters that are unlike under every name, declared ties or not."""
    free = case.probe.subject.choices.but(tying="none", norm_sharing="separate")
    values = draw_parameters("model", case.sizes, free, draw.rng)
    return {name: cast(one, case.probe.precision) for name, one in values.items()}


# The numbers


@check("model.formula", examples=2)
def test_formula(subject: Subject, draw: Draw) -> None:
    tied_all = subject.choices.tying == "all-three"
    case = drawn(
        subject,
        draw,
        lengths=(draw.length(), draw.length()),
        layers=draw.layers(1, 2),
        head_width=draw.choose((3, 2, 4)),
        source_vocabulary=11 if tied_all else 13,
        target_vocabulary=11,
    )
    matches(case.probe, *case.inputs, actual=case.output(), rows=case.real)
    size = draw.long(37)
    large = drawn(subject, draw, lengths=(size, size), layers=draw.deepest(), max_length=size)
    matches(large.probe, *large.inputs, actual=large.output(), rows=large.real)


@check("model.shapes", examples=3)
def test_shapes(subject: Subject, draw: Draw) -> None:
    ones = draw.choose((False, True))
    lengths = (1, 1) if ones else draw.lengths()
    case = drawn(subject, draw, lengths=lengths, batch=draw.choose((1, 2, 3)))
    same_precision(case.probe, case.output())


@check("model.encode-decode-is-forward", examples=3)
def test_encode_decode_is_forward(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, layers=draw.layers(1, 2))
    memory = case.probe.output(case.source, method="encode")
    seen = case.source != case.sizes.source_pad
    matches(
        case.probe, case.source, actual=memory, method="encode", rows=seen, what="encoded source"
    )
    # Another source is encoded meanwhile: the memory that is given counts, and no remembered one.
    other = draw.source(len(case.source), case.source.shape[1], case.sizes)
    case.probe.output(other, method="encode")
    decoded = case.probe.output(case.target, memory, case.source, method="decode")
    alike(
        case,
        decoded,
        case.output(),
        rows=case.real,
        what="output of encode and decode in two steps",
    )


# Padding, order and what came before


@check("model.padding-in-a-batch", examples=3)
def test_padding_in_a_batch(subject: Subject, draw: Draw) -> None:
    require_hiding(subject)
    case = drawn(subject, draw, batch=3, lengths=(draw.length(2), draw.length(2)))
    one = draw.choose((1, 2, 0))
    source = draw.source(1, draw.integer(1, case.source.shape[1] - 1), case.sizes)
    target = draw.target(1, draw.integer(1, case.target.shape[1] - 1), case.sizes)
    together = case.but(
        source=_padded(case.source, one, source, case.sizes.source_pad),
        target=_padded(case.target, one, target, case.sizes.target_pad),
    )
    alone = answer(case.probe, source, target)
    alike(
        together,
        together.output()[one : one + 1, : target.shape[1]],
        alone,
        rows=case.but(target=target).real,
        what="output of one pair in a padded batch",
    )


def _padded(tokens: Array, place: int, alone: Array, pad: int) -> Array:
    """Return `tokens` with the sentence `alone` in row `place`, padded at its end."""
    batch = tokens.copy()
    batch[place] = pad
    batch[place, : alone.shape[1]] = alone
    return batch


@check("model.pad-ids", examples=2)
def test_pad_ids(subject: Subject, draw: Draw) -> None:
    for pads in ((0, 10), (10, 0), draw.choose(((3, 3), (1, 2)))):
        case = drawn(
            subject,
            draw,
            lengths=(draw.length(3), draw.length(3)),
            source_pad=pads[0],
            target_pad=pads[1],
        )
        _mix_pads(case)
        matches(case.probe, *case.inputs, actual=case.output(), rows=case.real)


def _mix_pads(case: Case) -> None:
    """Write the pads of both sides into both sentences, beside words that are pads of neither."""
    source_pad, target_pad = case.sizes.source_pad, case.sizes.target_pad
    case.source[:, 1], case.target[:, 1] = source_pad, target_pad
    case.source[:, 2], case.target[:, 2] = 5, 5
    if source_pad != target_pad:
        case.source[:, 0], case.target[:, 0] = target_pad, source_pad


@check("model.source-order-matters", examples=3)
def test_source_order_matters(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, lengths=(draw.length(2), draw.length()))
    sizes, last = case.sizes, case.source.shape[1] - 1
    source = _full(draw, case)[0]
    moved = exchanged(draw, source[:, :1], sizes.source_vocabulary, sizes.source_pad)[:, 0]
    source[:, last] = moved
    swapped = source.copy()
    swapped[:, 0], swapped[:, last] = source[:, last], source[:, 0]
    before, after = case.but(source=source), case.but(source=swapped)
    first, second = before.output(), after.output()
    if subject.choices.positional_encoding == "none":
        alike(
            before,
            second,
            first,
            rows=case.real,
            what="output, no positions declared, after exchanging two source tokens",
        )
    else:
        why = "after exchanging two tokens of the source"
        changed(before, after, first, second, case.real, why)


@check("model.causality", examples=4)
def test_causality(subject: Subject, draw: Draw) -> None:
    require_hiding(subject)
    case = drawn(subject, draw, lengths=(draw.length(), draw.length(2)))
    step = draw.integer(1, case.target.shape[1] - 1)
    target = case.target.copy()
    sizes = case.sizes
    target[:, step] = draw.tokens(len(target), 1, sizes.target_vocabulary, sizes.target_pad)[:, 0]
    later = target.copy()
    later[:, step:] = exchanged(draw, target[:, step:], sizes.target_vocabulary, sizes.target_pad)
    before, after = case.but(target=target), case.but(target=later)
    first, second = before.output(), after.output()
    past = before.real.copy()
    past[:, step:] = False
    alike(
        before,
        second,
        first,
        rows=past,
        what=f"output before step {step} after changing the target from there on",
    )
    here = np.zeros_like(past)
    here[:, step] = True
    changed(before, after, first, second, here, f"at step {step} after changing its token")


@check("model.prefix-consistency", examples=3)
def test_prefix_consistency(subject: Subject, draw: Draw) -> None:
    require_hiding(subject)
    case = drawn(subject, draw, lengths=(draw.length(), draw.length(2)))
    steps = draw.integer(1, case.target.shape[1] - 1)
    prefix = case.but(target=case.target[:, :steps].copy())
    alike(
        case,
        prefix.output(),
        case.output()[:, :steps],
        rows=prefix.real,
        what=f"output for the first {steps} steps of the target",
    )


@check("model.no-history", examples=3)
def test_no_history(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw)
    batch, lengths = draw.batch(), (draw.length(1), draw.length(1))
    if draw.choose((True, False)):  # the same shapes betray what unlike ones make fail
        batch, lengths = len(case.source), (case.source.shape[1], case.target.shape[1])
    other = case.but(
        source=draw.source(batch, lengths[0], case.sizes),
        target=draw.target(batch, lengths[1], case.sizes),
    )
    given = case.output()
    first = given.copy()
    second = other.output().copy()
    rows = case.real
    equal(given[rows], first[rows], what="output of the first call, looked at after the second,")
    alike(case, case.output(), first, rows=rows, what="output of the first call made once more")
    fresh = subject.part("model", case.sizes, parameters=case.probe.parameters)
    what = "output of a fresh model, beside that of one called before,"
    alike(other, second, answer(fresh, *other.inputs), rows=other.real, what=what)


@check("model.sliced-tokens", examples=2)
def test_sliced_tokens(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, batch=draw.choose((2, 3)))
    subject.record.did("from here on the tokens are slices of longer arrays")
    wide = [np.pad(tokens, ((0, 0), (0, 1)), constant_values=1) for tokens in case.inputs]
    sliced = answer(case.probe, wide[0][:, :-1], wide[1][:, :-1])
    alike(case, sliced, case.output(), rows=case.real, what="output for slices of longer arrays")
    turned = answer(case.probe, np.asfortranarray(case.source), np.asfortranarray(case.target))
    alike(case, turned, case.output(), rows=case.real, what="output for transposed arrays")


@check("model.input-untouched", examples=2)
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw)
    case.source[0, -1] = case.sizes.source_pad
    case.source[0, 0] = _real(case.sizes.source_pad)
    case.target[0, -1] = case.sizes.target_pad
    case.target[0, 0] = _real(case.sizes.target_pad)
    case.output()
    memory = case.probe.output(case.source, method="encode")
    case.probe.output(case.target, memory, case.source, method="decode")


def _real(pad: int) -> int:
    return 1 if pad == 0 else 0


@check("model.batch-independence", examples=3)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, batch=draw.choose((3, 2)))
    one = draw.integer(0, len(case.source) - 1)
    mine, sizes = np.arange(len(case.source)) == one, case.sizes
    source = draw.source(len(mine), case.source.shape[1], sizes)
    target = draw.target(len(mine), case.target.shape[1], sizes)
    source[one], target[one] = case.source[one], case.target[one]
    before, rows = case.output(), case.real & mine[:, None]
    others = case.but(source=source, target=target)
    what = f"output of pair {one} beside other pairs"
    alike(others, others.output(), before, rows=rows, what=what)
    target = case.target.copy()
    target[one] = exchanged(draw, target[one], sizes.target_vocabulary, sizes.target_pad)
    after = case.but(target=target)
    changed(case, after, before, after.output(), rows, f"for other words in pair {one}")


# Modes


@check("model.deterministic-in-eval", examples=2)
def test_deterministic_in_eval(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, dropout=0.5 if subject.limits.dropout else 0.0)
    first = case.output().copy()
    equal(case.output()[case.real], first[case.real], what="output of the second call")
    if subject.limits.dropout:
        sizes = case.sizes.but(dropout=0.0)
        plain = subject.part("model", sizes, parameters=case.probe.parameters)
        what = "output in evaluation mode, beside that of a model without dropout,"
        alike(case, first, answer(plain, *case.inputs), rows=case.real, what=what)


@check("model.random-in-train", examples=2)
def test_random_in_train(subject: Subject, draw: Draw) -> None:
    require_dropout(subject)
    case = drawn(subject, draw, dropout=0.5)
    case.probe.train()
    _random(case, "in training mode at a dropout rate of 0.5")


def _random(case: Case, when: str) -> None:
    """Demand unlike answers to the same call; in a thousand numbers no two draws agree.

    The third call tells a model that a call switches to evaluation.
    """
    before = case.output()[case.real].copy()
    for _ in range(2):
        after = case.output()[case.real].copy()
        apart = distance(after, before)
        holds(apart > 0, f"Two calls {when} give the same output.", actual=after)
        before = after


@check("model.training-without-dropout", examples=2)
def test_training_without_dropout(subject: Subject, draw: Draw) -> None:
    lengths = (draw.length(1, 6), draw.length(2, 6))
    case = drawn(subject, draw, batch=3, lengths=lengths, layers=draw.layers(1, 2), dropout=0.0)
    before = case.output().copy()
    case.probe.train()
    for _ in range(3):
        now = case.output()
        alike(case, now, before, rows=case.real, what="output in training mode without dropout")


@check("model.mode-comes-back", examples=2)
def test_mode_comes_back(subject: Subject, draw: Draw) -> None:
    require_dropout(subject)
    case = drawn(subject, draw, dropout=0.5)
    case.probe.train()
    _random(case, "in training mode at a dropout rate of 0.5")
    case.probe.eval()
    first = case.output()[case.real].copy()
    equal(case.output()[case.real], first, what="second output in evaluation mode after training")
    case.probe.train()
    _random(case, "in training mode, back from evaluation,")
    case.probe.eval()
    equal(case.output()[case.real], first, what="output in evaluation mode after more training")


@check("model.modes-reach-all", examples=2)
def test_modes_reach_all(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, loaded=False, layers=draw.layers(1, 2))
    for training, switch in ((True, case.probe.train), (False, case.probe.eval)):
        switch()
        _all_modes(case.probe, training=training)
        case.probe.output(*case.inputs)
        _all_modes(case.probe, training=training)


def _all_modes(probe: Probe, *, training: bool) -> None:
    modes = inventory(probe)["modes"]
    wrong = [name or "the model" for name, mode in modes.items() if mode != training]
    asked = "training" if training else "evaluation"
    holds(bool(modes), "The inventory lists no parts.")
    holds(not wrong, f"{len(wrong)} of {len(modes)} parts are not in {asked} mode: {_few(wrong)}.")


def inventory(probe: Probe) -> Mapping[str, Mapping[str, Any]]:
    """Return what the part says it holds."""
    return probe.do("listing what it holds", lambda part: part.inventory())


def _few(names: list[str]) -> str:
    return ", ".join(names[:4]) + (", .." if len(names) > 4 else "")


@check("model.dropout-sites", examples=2)
def test_dropout_sites(subject: Subject, draw: Draw) -> None:
    require_dropout(subject)
    longest = draw.length(3, 6)
    case = drawn(subject, draw, batch=3, lengths=(longest, longest), dropout=0.9999)
    sizes = case.sizes
    source = _distinct(draw, case.source, sizes.source_vocabulary, sizes.source_pad)
    target = _distinct(draw, case.target, sizes.target_vocabulary, sizes.target_pad)
    awake = _states(case.probe, source, target)
    case.probe.train()
    for side, states in _states(case.probe, source, target).items():
        spread = float(_differences(awake[side]).max())
        holds(spread > 0, f"All states of the {side} are alike in evaluation mode.")
        reach = 0.02 * spread + rounding(case.probe.precision, 1) * largest(states)
        same = int((_differences(states) <= reach).sum(axis=1).max())
        holds(
            same > 0.4 * target.size,
            f"At a dropout rate of 0.9999 only {same} of {target.size} states of the {side} are "
            "alike: its embedding is not dropped.",
        )


def _states(probe: Probe, source: Array, target: Array) -> dict[str, Array]:
    """Return what either side makes of its tokens: the memory, and the output."""
    return {
        "source": probe.output(source, method="encode"),
        "target": probe.output(source, target),
    }


def _differences(states: Array) -> Floats:
    """Return how far any two rows of `states` are apart; what was dropped tells none apart."""
    rows = as_floats(states).reshape(-1, states.shape[-1])
    apart: Floats = np.abs(rows[:, None] - rows[None]).max(axis=-1)
    return apart


def _distinct(draw: Draw, tokens: Array, vocabulary: int, pad: int) -> Array:
    """Return real tokens of the shape of `tokens`, no two of one sentence alike."""
    real = [token for token in range(vocabulary) if token != pad]
    return np.stack([draw.rng.permutation(real)[: tokens.shape[1]] for _ in tokens])


# State, copies and moves


@check("model.state-round-trip", examples=2)
def test_state_round_trip(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, dropout=0.5 if subject.limits.dropout else 0.0)
    case.probe.load(unlike(case, draw))
    if "mode" in case.probe.part.capabilities:
        case.probe.train()
        case.probe.output(*case.inputs)
        case.probe.eval()
    before = case.output()[case.real].copy()
    fresh = case.probe.become("saving and loading the state", lambda part: part.reloaded())
    what = "output of a fresh model that has loaded the state"
    equal(case.but(probe=fresh).output()[case.real], before, what=what)


@check("model.state-independent-of-max-length", examples=2)
def test_state_independent_of_max_length(subject: Subject, draw: Draw) -> None:
    longest = subject.limits.length or 9
    if longest < 2:
        raise Absent(f"{subject.name} is limited to length {longest}")
    sizes = model_sizes(subject, draw, layers=draw.layers(1, 2), max_length=longest)
    states = [
        inventory(subject.part("model", one))["state"]
        for one in (sizes, sizes.but(max_length=longest - 1))
    ]
    learned = subject.choices.positional_encoding == "learned"
    excepted = (longest, sizes.d_model) if learned else None
    names = sorted(set(states[0]) | set(states[1]))
    differ = [
        f"{name} {states[0].get(name)}"
        for name in names
        if states[0].get(name) != states[1].get(name) and states[0].get(name) != excepted
    ]
    holds(bool(names), "The saved state is empty.")
    holds(not differ, f"With a greatest length of {longest} the state has another {_few(differ)}.")


@check("model.deep-copy", examples=2)
def test_deep_copy(subject: Subject, draw: Draw) -> None:
    _lives_on(subject, draw, "deepcopy", "deep copy")


@check("model.pickle", examples=2)
def test_pickle(subject: Subject, draw: Draw) -> None:
    _lives_on(subject, draw, "pickle", "pickled copy")


def _lives_on(subject: Subject, draw: Draw, how: str, name: str) -> None:
    """Demand that a copy computes the same, moves nothing of its original, and ties the same."""
    case = drawn(subject, draw)
    before = case.output()[case.real].copy()
    copy = case.but(probe=case.probe.become(f"making a {name}", lambda part: part.copied(how)))
    equal(copy.output()[case.real], before, what=f"output of the {name}")
    parameters = unlike(case, draw)
    copy.probe.load(parameters)
    what = f"output of the original after loading into its {name}"
    equal(case.output()[case.real], before, what=what)
    after = copy.output()[case.real].copy()
    moved = distance(after, before) > 0
    holds(moved, f"Other parameters loaded into the {name} do not change its output.")
    case.probe.load(parameters)
    equal(case.output()[case.real], after, what=f"output of the original, loaded as its {name},")


@check("model.precision-move", examples=2)
def test_precision_move(subject: Subject, draw: Draw) -> None:
    subject.require_precision("float32")
    subject.require_precision("float64")
    case = drawn(subject, draw, precision="float64")
    case.probe.load({name: cast(one, "float32") for name, one in case.probe.parameters.items()})
    moved = case.probe.become(
        "moving it to float32", lambda part: part.moved(precision="float32"), "float32"
    )
    held = _held(moved)
    wrong = [
        f"{name} ({facts['dtype']})"
        for name, facts in held.items()
        if "float" in facts["dtype"] and facts["dtype"] != "float32"
    ]
    holds(bool(held), "The inventory lists no arrays.")
    holds(not wrong, f"Moved to float32 the model still holds {_few(wrong)}.")
    actual = answer(moved, *case.inputs)
    same_precision(moved, actual)
    matches(moved, *case.inputs, actual=actual, rows=case.real, what="output after the move")


def _held(probe: Probe) -> dict[str, Mapping[str, Any]]:
    """Return the facts of every array that the part holds, wherever it keeps it."""
    listed = inventory(probe)
    return {
        f"{kind} {name}": facts
        for kind in ("parameters", "buffers", "loose")
        for name, facts in listed[kind].items()
    }


@check("model.device-move", examples=1)
def test_device_move(subject: Subject, draw: Draw) -> None:
    sizes = model_sizes(subject, draw, layers=draw.layers(1, 2))
    probe = subject.part("model", sizes)
    moved = probe.become("moving it to another device", lambda part: part.moved(device="meta"))
    held = _held(moved)
    behind = [
        f"{name} ({facts['device']})" for name, facts in held.items() if facts["device"] != "meta"
    ]
    holds(bool(held), "The inventory lists no arrays.")
    holds(not behind, f"{len(behind)} of {len(held)} arrays stayed behind: {_few(behind)}.")


# Gradients


@check("model.every-parameter-reached", examples=2)
def test_every_parameter_reached(subject: Subject, draw: Draw) -> None:
    lengths = (draw.length(2, 4), draw.length(2, 4))
    case = drawn(subject, draw, batch=3, lengths=lengths, layers=draw.layers(1, 2))
    every_parameter_reached(case.probe, *_full(draw, case), draw=draw)


def _full(draw: Draw, case: Case) -> tuple[Array, Array]:
    """Return tokens without pads."""
    sizes, batch = case.sizes, len(case.source)
    return (
        draw.tokens(batch, case.source.shape[1], sizes.source_vocabulary, sizes.source_pad),
        draw.tokens(batch, case.target.shape[1], sizes.target_vocabulary, sizes.target_pad),
    )


@check("model.parameter-gradient", examples=2)
def test_parameter_gradient(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, layers=draw.layers(1, 2))
    source, target = _full(draw, case)
    answer(case.probe, source, target)
    agrees_with_differences(case.probe, source, target, draw=draw)


@check("model.gradient-finite", examples=2)
def test_gradient_finite(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, lengths=(draw.length(2), draw.length(3)))
    case.source[0, -1], case.target[0, 1] = case.sizes.source_pad, case.sizes.target_pad
    case.source[0, 0] = _real(case.sizes.source_pad)
    real = case.real[..., None]
    pulled = draw.floats(*case.target.shape, case.sizes.target_vocabulary) * real
    for factor in (1.0, 1e3):
        _steepen(case, factor)
        gradient = case.probe.vjp(case.inputs, pulled)
        found = [gradient_of(case.probe, gradient, name) for name in case.probe.parameters]
        size = max(largest(one) for one in found)
        holds(size > 0 or factor > 1, "No gradient reaches any parameter.")


def _steepen(case: Case, factor: float) -> None:
    """Multiply the generator's bias, so that most tokens become as good as impossible."""
    parameters = dict(case.probe.parameters)
    name = "generator.bias"
    parameters[name] = cast(parameters[name] * factor, case.probe.precision)
    case.probe.load(parameters)


# Parameters


@check("model.tying", examples=3)
def test_tying(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, source_vocabulary=11, target_vocabulary=11)
    declared = subject.choices.tying
    case.probe.load(unlike(case, draw))
    held = {name: as_floats(one) for name, one in exported(case.probe).items()}
    for one, other, options in _MATRICES:
        same = np.array_equal(held[one], held[other])
        found = "come back as one" if same else "come back unlike"
        holds(
            same == (declared in options),
            f"Tying is declared as {declared}, and the numbers loaded into {one} and {other} "
            f"{found}.",
        )
    case.probe.parameters = held
    matches(case.probe, *case.inputs, actual=case.output(), rows=case.real)


_MATRICES = (
    ("source_embedding.weight", "target_embedding.weight", ("all-three",)),
    ("target_embedding.weight", "generator.weight", ("all-three", "target-and-output")),
    ("source_embedding.weight", "generator.weight", ("all-three",)),
)
"""Pairs of vocabulary matrices, and the options of tying under which they are one."""


def exported(probe: Probe) -> dict[str, Array]:
    """Return the parameters that the part holds, by canonical names."""
    return probe.do("exporting its parameters", lambda part: part.export())


@check("model.tied-gradient", examples=2)
def test_tied_gradient(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw)
    twins = tied("model", case.sizes, subject.choices)
    pairs = {name: root for name, root in twins.items() if name in _VOCABULARIES}
    if not pairs:
        raise Absent(f"{subject.name} declares no tied matrices")
    inputs = _full(draw, case)
    shape = (*case.target.shape, case.sizes.target_vocabulary)
    gradient = case.probe.vjp(inputs, draw.floats(*shape))
    for name, root in pairs.items():
        found = gradient_of(case.probe, gradient, name)
        what = f"gradient of {name}, tied to {root},"
        equal(found, gradient_of(case.probe, gradient, root), what=what)
        holds(bool(found.any()), f"No gradient reaches {name}.")
    agrees_with_differences(case.probe, *inputs, draw=draw)


_VOCABULARIES = frozenset(name for pair in _MATRICES for name in pair[:2])


@check("model.unlike-vocabularies-refused", examples=2)
def test_unlike_vocabularies_refused(subject: Subject, draw: Draw) -> None:
    if subject.choices.tying != "all-three":
        raise Absent(f"{subject.name} does not tie the two vocabularies")
    subject.part("model", model_sizes(subject, draw))
    pair = draw.choose(((11, 13), (13, 11)))
    sizes = model_sizes(subject, draw, source_vocabulary=pair[0], target_vocabulary=pair[1])
    doing = f"building a model that ties vocabularies of {pair[0]} and {pair[1]} tokens"
    refused(subject, doing, lambda: subject.part("model", sizes), naming=pair)


@check("model.parameter-count", examples=3)
def test_parameter_count(subject: Subject, draw: Draw) -> None:
    sizes = model_sizes(subject, draw, layers=draw.layers(1, 2))
    if subject.limits.layers is None and draw.choose((False, True)):
        sizes = sizes.but(layers=3)
    found = inventory(subject.part("model", sizes))["parameters"]
    held = sum(prod(facts["shape"]) for facts in found.values())
    implied = count("model", sizes, subject.choices)
    holds(
        held == implied,
        f"The model trains {held} numbers; its sizes and choices imply {implied}.",
    )


@check("model.parameter-map-complete", examples=2)
def test_parameter_map_complete(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, layers=draw.layers(1, 2))
    found, loaded = exported(case.probe), case.probe.parameters
    lacking, extra = sorted(set(loaded) - set(found)), sorted(set(found) - set(loaded))
    holds(not lacking, f"{len(lacking)} parameters do not come back: {_few(lacking)}.")
    holds(not extra, f"{len(extra)} parameters come back that were never loaded: {_few(extra)}.")
    for name, values in loaded.items():
        equal(found[name], values, what=f"parameter {name}, as it comes back,")


@check("model.finite-at-birth", examples=3)
def test_finite_at_birth(subject: Subject, draw: Draw) -> None:
    sizes = model_sizes(subject, draw, layers=draw.layers(1, 2))
    for name, values in exported(subject.part("model", sizes)).items():
        finite(values, what=f"parameter {name} of a fresh model")
        size = largest(values)
        holds(size < 10, f"The parameter {name} of a fresh model holds {size:.3g}.")


@check("model.layers-differ-at-birth", examples=2)
def test_layers_differ_at_birth(subject: Subject, draw: Draw) -> None:
    sizes = model_sizes(subject, draw, layers=draw.layers(2, 3))
    held = exported(subject.part("model", sizes))
    matrices = [name for name, values in held.items() if ".layers." in name and values.ndim > 1]
    seen: dict[tuple[str, bytes], str] = {}
    for name in matrices:
        stack, _, rest = name.partition(".layers.")
        place = f"{stack} {rest.partition('.')[2]}"
        twin = seen.setdefault((place, as_floats(held[name]).tobytes()), name)
        holds(twin == name, f"{name} and {twin} hold the same numbers at birth.")


# Refusals


@check("model.out-of-range-refused", examples=2)
def test_out_of_range_refused(subject: Subject, draw: Draw) -> None:
    vocabularies = (11, 11) if subject.choices.tying == "all-three" else draw.choose(_UNLIKE)
    source, target = vocabularies
    case = drawn(subject, draw, source_vocabulary=source, target_vocabulary=target)
    case.source[-1, -1], case.target[-1, -1] = source - 1, target - 1
    case.output()
    _refuses_ids(case, draw)


_UNLIKE = ((11, 13), (13, 11))


def _refuses_ids(case: Case, draw: Draw) -> None:
    """Demand that ids outside the vocabulary of their own side are refused, on either side."""
    sizes = case.sizes
    sides = {"source": sizes.source_vocabulary, "target": sizes.target_vocabulary}
    for side, vocabulary in sides.items():
        for wrong in (-1, vocabulary, vocabulary + draw.integer(1, 90)):
            tokens: Array = getattr(case, side).copy()
            place = tuple(draw.integer(0, extent - 1) for extent in tokens.shape)
            tokens[place] = wrong
            inputs = case.but(**{side: tokens}).inputs
            refused(
                case.probe.subject,
                f"the {side} token {wrong} in a vocabulary of {vocabulary}",
                lambda inputs=inputs: case.probe.output(*inputs),  # type: ignore[misc]
                naming=(wrong,),
            )


@check("model.too-long-input", examples=2)
def test_too_long_input(subject: Subject, draw: Draw) -> None:
    longest = draw.length(2, 5)
    lengths = (longest, draw.integer(1, longest))
    case = drawn(subject, draw, lengths=lengths, max_length=longest)
    matches(case.probe, *case.inputs, actual=case.output(), rows=case.real)
    case = case.but(target=draw.target(len(case.source), longest, case.sizes))
    matches(case.probe, *case.inputs, actual=case.output(), rows=case.real)
    _refuses_lengths(case, draw, longest)


def _refuses_lengths(case: Case, draw: Draw, longest: int) -> None:
    """Demand that more than `longest` tokens are refused or served in full, on either side."""
    subject, sizes = case.probe.subject, case.sizes
    batch, length = len(case.source), longest + draw.integer(1, 2)
    if subject.limits.length is not None and length > subject.limits.length:
        return
    doing = f"a sentence of {length} tokens where the greatest length is {longest}"
    for longer in (
        case.but(source=draw.source(batch, length, sizes)),
        case.but(target=draw.target(batch, length, sizes)),
    ):
        _refused_or_served(subject, doing, lambda longer=longer: longer, length)  # type: ignore[misc]


def _refused_or_served(subject: Subject, doing: str, make: Callable[[], Case], number: int) -> None:
    """Demand a refusal that names `number`, or the whole answer where positions have no end."""
    try:
        case = make()
        actual = case.output()
    except BackendError:
        refused(subject, doing, lambda: make().output(), naming=(number,))
        return
    learned = subject.choices.positional_encoding == "learned"
    holds(not learned, f"{doing} was not refused, and there are no positions to learn beyond it.")
    matches(case.probe, *case.inputs, actual=actual, rows=case.real, what=f"output for {doing}")


@check("model.impossible-sizes-refused", examples=1)
def test_impossible_sizes_refused(subject: Subject, draw: Draw) -> None:
    longest = min(subject.limits.length or 4, 4)
    case = drawn(subject, draw, lengths=(longest, longest), max_length=longest)
    for changes, naming in _impossible(subject, case.sizes):
        told = ", ".join(f"{name} {value}" for name, value in changes.items())
        sizes = case.sizes.but(**changes)
        refused(
            subject,
            f"building a model with {told}",
            lambda sizes=sizes: subject.part("model", sizes),  # type: ignore[misc]
            naming=naming,
        )
    for useless in (0, -2):
        _without_length(case, useless)
    _refuses_ids(case, draw)
    _refuses_lengths(case, draw, longest)


def _without_length(case: Case, longest: int) -> None:
    """Demand that a greatest length of `longest` is refused, or means nothing to the model."""
    subject, sizes = case.probe.subject, case.sizes.but(max_length=longest)

    def make() -> Case:
        probe = subject.part("model", sizes)
        if subject.choices.positional_encoding != "learned":
            probe.load(case.probe.parameters)
        return case.but(probe=probe)

    doing = f"building a model with max_length {longest}"
    _refused_or_served(subject, doing, make, longest)


Change = tuple[dict[str, float], tuple[float, ...]]
"""Sizes that cannot be, and the numbers among them that a refusal must name."""


def _impossible(subject: Subject, sizes: Sizes) -> list[Change]:
    """Return changes of `sizes` that each make a model impossible."""
    tables = ("source_vocabulary", "target_vocabulary")
    single = ("d_model", "heads", "d_ff", "layers", *tables)
    wrong: list[Change] = [({name: size}, (size,)) for name in single for size in (0, -1, -4)]
    wrong += [(dict.fromkeys(tables, size), (size,)) for size in (0, -3)]
    heads = 2 if (subject.limits.heads or 2) >= 2 else 1
    if subject.choices.head_width == "d/h" and heads > 1:
        wrong += [({"d_model": 7, "heads": 2}, (7, 2)), ({"d_model": 2, "heads": 4}, (2, 4))]
    if subject.limits.dropout:
        wrong += [({"dropout": rate}, (rate,)) for rate in (-0.25, 1.5)]
        wrong.append(({"dropout": 1.0}, ()))
    return wrong


# The world around


@check("model.global-state-untouched", examples=1)
def test_global_state_untouched(subject: Subject, draw: Draw) -> None:
    components = subject.backend.components
    raised = []
    for component in components:
        try:
            leaves_the_process(subject, draw, component)
        except BackendError as error:  # the clauses of the component tell it
            raised.append(error)
    if raised and len(raised) == len(components):
        raise raised[0]


# Precisions


@check("model.float32", examples=4)
def test_float32(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, precision="float32", head_width=4, layers=draw.layers(1, 2))
    actual = case.output()
    same_precision(case.probe, actual)
    matches(case.probe, *case.inputs, actual=actual, rows=case.real, what="output in float32")


@check("model.half-precision", examples=2)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    halves = [one for one in HALVES if one in subject.limits.precisions]
    if not halves:
        raise Absent(f"{subject.name} computes in no half precision")
    for precision in halves:
        case = drawn(subject, draw, precision=precision, layers=draw.layers(1, 2))
        case.source[0, -1], case.source[0, 0] = case.sizes.source_pad, _real(case.sizes.source_pad)
        _steepen(case, draw.choose((100.0, 1.0)))
        same_precision(case.probe, case.output())
