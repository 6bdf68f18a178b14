"""The formula of the loss, and how it is got wrong."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest_spec.attention import softmax
from attentest_spec.generator import log_softmax
from attentest_spec.loss import counted, cross, logarithms, normaliser, smoothed
from attentest_spec.setting import Array


def loss(formula: Formula, output: Step, target: Step) -> Step:
    """Add the cross-entropy of the smoothed targets, summed over those that count, and divided.

    Raises ValueError for a rate of smoothing that code may refuse.
    """
    if not 0 <= formula.sizes.smoothing < 1:
        raise ValueError(f"smoothing is {formula.sizes.smoothing}, which leaves no target")
    keep = formula.step(
        "",
        "counted targets",
        partial(counted, formula.setting),
        target,
        text="the targets that are no padding",
        axes="BT",
        mistakes=[Mistake("all targets, padding too", lambda t: np.ones_like(t, dtype=bool))],
    )
    logs = _logarithms(formula, output)
    wanted = _smoothed(formula, target, keep)
    losses = _losses(formula, wanted, logs, target, keep)
    total = _total(formula, losses, keep)
    total.mistakes = [*total.mistakes, *_made_before(formula, output, logs, wanted, keep)]
    return total


def _logarithms(formula: Formula, output: Step) -> Step:
    """Add the logarithms of the probabilities, and return their step."""
    kind = formula.choices.loss_input
    if kind == "log-probabilities":
        return output
    of = "of the softmax of the logits over the vocabulary" if kind == "logits" else "of the output"
    over_others = [
        Mistake(f"logarithms of the softmax over the {what}", partial(_log_softmax, axis))
        for axis, what in ((-2, "positions"), (0, "samples"))
    ]
    again = [
        Mistake("the softmax of the logits, no logarithm", softmax),
        Mistake("logarithms of the softmax of the softmax", lambda x: log_softmax(softmax(x))),
        *over_others,
    ]
    return formula.step(
        "",
        "logarithms",
        partial(logarithms, kind),
        output,
        text=f"logarithms {of}",
        axes=output.axes,
        mistakes=again if kind == "logits" else (),
    )


def _log_softmax(axis: int, x: Array) -> Array:
    return log_softmax(x.swapaxes(axis, -1)).swapaxes(axis, -1)


def _smoothed(formula: Formula, target: Step, keep: Step) -> Step:
    """Add the smoothed distributions of the targets."""
    given, words = formula.setting, formula.sizes.target_vocabulary
    wanted = formula.step(
        "",
        "smoothed targets",
        lambda target: smoothed(given, target, words),
        target,
        text=_SHARES[formula.choices.smoothed_mass],
        axes="BTV",
    )
    if formula.sizes.smoothing:
        wanted.mistakes = list(_other_shares(formula))
    shares = words - _LEFT_OUT[formula.choices.smoothed_mass]

    def before(target: Array, keep: Array) -> Array:
        rate = formula.sizes.smoothing
        return np.where(np.arange(words) == target[..., None], 1.0 - rate, rate / shares)

    for name, compute in (
        ("smoothed targets with a share of padding", before),
        ("one-hot targets", lambda target, keep: 1.0 * (np.arange(words) == target[..., None])),
        ("smoothed targets that count", lambda _, keep: wanted.value * keep[..., None]),
    ):
        formula.step("", name, compute, target, keep, text=name, axes="BTV", optional=True)
    return wanted


_LEFT_OUT = {"all-words": 0, "other-words": 1, "other-real-words": 2}
"""The number of words that get no share of the mass."""

_SHARES = {
    "all-words": "1 - rate for the target, and rate / V more for every word",
    "other-words": "1 - rate for the target, and rate / (V - 1) for every other word",
    "other-real-words": "1 - rate for the target, and rate / (V - 2) for every other word but "
    "padding",
}
"""The distribution of a target by its option, for a vocabulary of V words."""


def _other_shares(formula: Formula) -> Iterator[Mistake]:
    """Yield the ways in which the mass is shared otherwise."""
    rate, words = formula.sizes.smoothing, formula.sizes.target_vocabulary
    pad = formula.sizes.target_pad
    divisors = {"V": words, "(V - 1)": words - 1, "(V - 2)": words - 2}
    for (name, divisor), without_pad, whole, more in product(
        divisors.items(), (True, False), (False, True), (False, True)
    ):

        def compute(
            target: Array,
            share: float = rate / divisor,
            without_pad: bool = without_pad,
            own: float = (1.0 if whole else 1.0 - rate) + (rate / divisor if more else 0.0),
        ) -> Array:
            chosen = np.arange(words) == target[..., None]
            made = np.where(chosen, own, share)
            if without_pad:
                made[..., pad] = 0.0
            return made

        own = ("1" if whole else "1 - rate") + (f" + rate / {name}" if more else "")
        others = "every other word but padding" if without_pad else "every other word"
        yield Mistake(f"{own} for the target, and rate / {name} for {others}", compute)
    yield Mistake(
        "the target alone, not smoothed", lambda t: 1.0 * (np.arange(words) == t[..., None])
    )


def _losses(formula: Formula, wanted: Step, logs: Step, target: Step, keep: Step) -> Step:
    """Add the loss of every position."""
    _parts_of_losses(formula, wanted, logs, target, keep)
    divergence = formula.choices.loss_measure == "divergence"
    surprise = cross(wanted.value, np.log(np.where(wanted.value > 0, wanted.value, 1.0)))
    less = surprise if divergence else 0.0
    losses = formula.step(
        "",
        "losses",
        lambda wanted, logs: cross(wanted, logs) - less,
        wanted,
        logs,
        text="minus the sum of target * logarithm over the vocabulary"
        + (", less the entropy of the target" if divergence else ""),
        axes="BT",
        mistakes=[
            Mistake("the sum of target * logarithm, without the minus", lambda w, x: -cross(w, x)),
            Mistake("the mean over the vocabulary", lambda w, x: cross(w, x) / w.shape[-1]),
        ],
    )
    formula.step(
        "",
        "losses that count",
        lambda losses, keep: np.where(keep, losses, 0.0),
        losses,
        keep,
        text="the losses, 0 for padding",
        axes="BT",
        optional=True,
    )
    return losses


def _parts_of_losses(formula: Formula, wanted: Step, logs: Step, target: Step, keep: Step) -> None:
    """Add what code computes on its way to the losses, of either sign."""
    words, rate = formula.sizes.target_vocabulary, formula.sizes.smoothing
    add = partial(formula.step, "", optional=True)

    def of_target(logs: Array, target: Array) -> Array:
        return np.take_along_axis(logs, target[..., None], -1)[..., 0]

    for name, sign in (("", 1.0), ("minus ", -1.0)):
        one = add(
            f"{name}logarithm of the target",
            lambda x, t, sign=sign: sign * of_target(x, t),
            logs,
            target,
            text=f"{name}the logarithm of the target",
            axes="BT",
        )
        mean = add(
            f"{name}mean of the logarithms",
            lambda x, sign=sign: sign * x.mean(-1),
            logs,
            text=f"{name}the mean of the logarithms over the vocabulary",
            axes="BT",
            mistakes=[
                Mistake(f"{name}the sum of the logarithms", lambda x, sign=sign: sign * x.sum(-1)),
                Mistake("the mean of another sign", lambda x, sign=sign: -sign * x.mean(-1)),
            ],
        )
        for text, part, factor in (("1 - rate", one, 1.0 - rate), ("rate", mean, rate)):
            add(
                f"{text} times {part.name}",
                lambda x, factor=factor: factor * x,
                part,
                text=f"({text}) times {part.text}",
                axes="BT",
                mistakes=[
                    Mistake(f"{part.text}, unchanged", lambda x: x),
                    Mistake(f"(rate) times {part.text}", lambda x: rate * x),
                    Mistake(f"(1 - rate) times {part.text}", lambda x: (1.0 - rate) * x),
                    Mistake(f"rate / V times {part.text}", lambda x: rate / words * x),
                ],
            )
        add(
            f"{name}terms",
            lambda w, x, sign=sign: sign * np.where(w > 0, w * np.where(w > 0, x, 0.0), 0.0),
            wanted,
            logs,
            text=f"{name}target * logarithm",
            axes="BTV",
        )
        add(
            f"{name}terms that count",
            lambda w, x, k, sign=sign: sign * w * np.where(k[..., None] & (w > 0), x, 0.0),
            wanted,
            logs,
            keep,
            text=f"{name}target * logarithm, 0 for padding",
            axes="BTV",
        )


def _total(formula: Formula, losses: Step, keep: Step) -> Step:
    """Add the sum over what counts, divided as chosen."""
    kind = formula.choices.loss_normaliser
    said = {
        "tokens": " / the number of targets that count",
        "sentences": " / the number of sentences",
        "none": ", not divided",
    }
    divisors = {
        said["tokens"]: lambda k: k.sum(),
        said["sentences"]: len,
        said["none"]: lambda k: 1,
        " / the number of all targets, padding too": lambda k: k.size,
        " / the number of positions": lambda k: k.shape[-1],
    }
    others = {text: divisor for text, divisor in divisors.items() if text != said[kind]}

    def summed(losses: Array, keep: Array) -> Array:
        return np.asarray(losses[keep].sum() / normaliser(formula.setting, keep))

    return formula.step(
        "",
        "loss",
        summed,
        losses,
        keep,
        text=f"sum of the losses that count{said[kind]}",
        axes="",
        mistakes=[
            *(
                Mistake(
                    f"sum of the losses that count{text}",
                    lambda x, k, divisor=divisor: np.asarray(x[k].sum() / divisor(k)),
                )
                for text, divisor in others.items()
            ),
            *(
                Mistake(
                    f"sum of all losses, padding too{text}",
                    lambda x, k, divisor=divisor: np.asarray(x.sum() / divisor(k)),
                )
                for text, divisor in divisors.items()
            ),
            Mistake("sum of the losses of padding", lambda x, k: np.asarray(x[~k].sum())),
        ],
    )


def _made_before(
    formula: Formula, output: Step, logs: Step, wanted: Step, keep: Step
) -> Iterator[Mistake]:
    """Yield the losses of one function that does all, with a mistake inside or before it."""
    divisor = normaliser(formula.setting, keep.value)

    def whole(wanted: Array, logs: Array) -> Array:
        return np.asarray(cross(wanted, logs)[keep.value].sum() / divisor)

    target = next(one for one in wanted.inputs if one.name == "target")
    for one in logs.mistakes if logs is not output else ():
        assert one.compute is not None
        yield Mistake(
            f"that of {one.text}",
            lambda *_, one=one: whole(wanted.value, one.compute(output.value)),
        )
    for one in wanted.mistakes:
        yield Mistake(
            f"that of targets with {one.text}",
            lambda *_, one=one: whole(one.compute(target.value), logs.value),
        )
