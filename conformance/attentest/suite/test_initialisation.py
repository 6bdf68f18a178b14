"""Checks of the chapter `initialisation`: parameters of models that were built and not loaded."""

from collections.abc import Iterable, Mapping
from math import log, sqrt

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats, largest
from attentest.judging.check import check
from attentest.suite.test_model.cases import export_parameters, first_names, model_sizes
from attentest.testing.assertions import holds
from attentest.testing.draw import Draw
from attentest_spec import CHOICES, Choices, Setting
from attentest_spec.initialisation import (
    EMBEDDINGS,
    GENERATOR,
    Distribution,
    distribution,
    ends_sublayer,
    is_packed,
)
from attentest_spec.parameters import tied
from attentest_spec.precision import epsilon
from attentest_spec.setting import Array, Floats

CHANCE = 1e-12
"""The probability with which one comparison accuses correct code."""

CONSTRUCTIONS = 3
_X = log(2 / CHANCE)
_HUGE = 1000.0
_ROUNDING = 1e-5


class Fresh:
    """The parameters of several models that were built at the same sizes, and not loaded.

    With a `seed`, each is built after that was set.
    """

    def __init__(
        self, subject: Subject, draw: Draw, count: int = CONSTRUCTIONS, seed: int | None = None
    ) -> None:
        limits = subject.limits
        sizes = model_sizes(
            subject,
            draw,
            layers=min(2, limits.layers or 2),
            heads=max(limits.fewest_heads, min(2, limits.heads or 2)),
            head_width=16,
            d_ff=72,
            source_vocabulary=47,
            target_vocabulary=47,
        )
        self.subject = subject
        self.given = Setting(sizes, subject.choices)
        built = []
        for _ in range(count):
            if seed is not None:
                subject.seed(seed)
            built.append(export_parameters(subject.part("model", sizes)))
        self.models: list[dict[str, Array]] = [
            {name: as_floats(values) for name, values in one.items()} for one in built
        ]

    @property
    def names(self) -> list[str]:
        """The canonical names of the first model, tied ones once."""
        twins = tied("model", self.given.sizes, self.given.choices)
        return [name for name in self.models[0] if name not in twins]

    def matrices(self) -> list[str]:
        """Return the names of the parameters of two dimensions."""
        return [name for name in self.names if self.models[0][name].ndim > 1]

    def linear(self) -> list[str]:
        """Return the names of the matrices of the linear maps in both stacks."""
        return [name for name in self.matrices() if ".layers." in name]

    def numbers(self, name: str) -> Floats:
        """Return the numbers (N,) of a parameter in all models, without rows of pad ids."""
        pads = {
            "source_embedding.weight": self.given.sizes.source_pad,
            "target_embedding.weight": self.given.sizes.target_pad,
        }
        found = [one[name] for one in self.models]
        if name in pads:
            found = [np.delete(one, pads[name], axis=0) for one in found]
        return np.concatenate([one.ravel() for one in found])

    def problems(self, names: Iterable[str], choices: Choices) -> list[str]:
        """Return how the parameters differ from their distributions under `choices`."""
        given = Setting(self.given.sizes, choices)
        shapes = {name: self.models[0][name].shape for name in names}
        declared = {name: distribution(given, name, shape) for name, shape in shapes.items()}
        drawn = {name: one for name, one in declared.items() if one is not None}
        rounding = max(_ROUNDING, epsilon(self.subject.precision))
        found = [_problem(name, self.numbers(name), one, rounding) for name, one in drawn.items()]
        return [*filter(None, found), *filter(None, [self._shape(drawn)])]

    def _shape(self, drawn: Mapping[str, Distribution]) -> str:
        """Say whether numbers that should be normal have tails, all parameters taken together."""
        normal = {name: one.deviation for name, one in drawn.items() if one.kind == "normal"}
        if not normal:
            return ""
        beyond = np.concatenate(
            [np.abs(self.numbers(name)) > sqrt(3) * size for name, size in normal.items()]
        )
        share, wanted = float(beyond.mean()), 0.0832645
        if abs(share - wanted) <= sqrt(_X / (2 * beyond.size)):
            return ""
        return (
            f"{100 * share:.1f} % of the numbers are beyond 1.73 deviations, "
            f"and {100 * wanted:.1f} % of normal ones are"
        )


def _problem(name: str, values: Floats, declared: Distribution, rounding: float) -> str:
    """Say how numbers (N,) differ from their distribution; "" where they do not.

    `rounding` is the relative error of each of them.
    """
    count, size = values.size, declared.deviation
    if declared.kind == "zero":
        return f"{name} is not zero" if values.any() else ""
    found = sqrt(float(np.mean(values**2)))
    wrong = f"{name} has a deviation of {found:.4g}, and {size:.4g} is declared"
    if declared.kind == "normal":
        ratio, margin = count * (found / size) ** 2, 2 * sqrt(count * _X)
        return "" if count - margin <= ratio <= count + margin + 2 * _X else wrong
    top = largest(values) / declared.bound
    if not CHANCE ** (1 / count) - rounding <= top <= 1 + rounding:
        return f"{wrong}; its largest number is {top:.3g} times the bound"
    square = float(np.mean((values / declared.bound) ** 2))
    return "" if abs(square - 1 / 3) <= sqrt(_X / (2 * count)) else wrong


def _judge(fresh: Fresh, names: list[str], choice: str) -> None:
    """Demand the declared option of `choice`; report the one that fits where there is none."""
    choices = fresh.subject.choices
    if not names:
        raise Absent(f"nothing shows {choice}")
    if choices[choice] == "unspecified":
        fresh.subject.note(_statement(fresh, names, choice))
        return
    problems = fresh.problems(names, choices)
    holds(not problems, f"{choice} is declared as {choices[choice]}: {'; '.join(problems[:2])}.")


def _statement(fresh: Fresh, names: list[str], choice: str) -> str:
    """Return which listed option of `choice` the parameters fit."""
    fitting = [
        option
        for option in CHOICES[choice].names[1:]
        for other in [fresh.subject.choices.but(**{choice: option})]
        if _is_drawn(fresh, names, other) and not fresh.problems(names, other)
    ]
    return f"{choice} is not declared; measured: {' or '.join(fitting) or 'none of the options'}."


def _is_drawn(fresh: Fresh, names: list[str], choices: Choices) -> bool:
    given = Setting(fresh.given.sizes, choices)
    shapes = fresh.models[0]
    return any(distribution(given, name, shapes[name].shape) for name in names)


def _inner(fresh: Fresh) -> list[str]:
    """Return the matrices that no other clause judges."""
    xavier = str(fresh.subject.choices.initialisation).startswith("xavier")
    return [
        name
        for name in fresh.linear()
        if not ends_sublayer(name) and not (xavier and is_packed(name))
    ]


@check("initialisation.matrices", examples=1)
def test_matrices(subject: Subject, draw: Draw) -> None:
    fresh = Fresh(subject, draw)
    _judge(fresh, _inner(fresh), "initialisation")


@check("initialisation.packing", examples=1)
def test_packing(subject: Subject, draw: Draw) -> None:
    if not subject.choices.initialisation.startswith("xavier"):
        raise Absent("only Xavier's distributions depend on the number of outputs")
    fresh = Fresh(subject, draw)
    _judge(fresh, [*filter(is_packed, fresh.linear())], "initialisation_packing")


@check("initialisation.residual-scale", examples=1)
def test_residual_scale(subject: Subject, draw: Draw) -> None:
    if subject.choices.initialisation == "unspecified":
        raise Absent("the distribution of the other matrices is not declared")
    fresh = Fresh(subject, draw)
    _judge(fresh, [*filter(ends_sublayer, fresh.linear())], "residual_initialisation")


@check("initialisation.generator", examples=1)
def test_generator(subject: Subject, draw: Draw) -> None:
    fresh = Fresh(subject, draw)
    _judge(fresh, [name for name in fresh.names if name == GENERATOR], "generator_initialisation")


@check("initialisation.embeddings", examples=1)
def test_embeddings(subject: Subject, draw: Draw) -> None:
    if subject.choices.tying != "none":
        raise Absent("the embeddings are tied")
    fresh = Fresh(subject, draw)
    _judge(fresh, [*EMBEDDINGS], "embedding_initialisation")


@check("initialisation.pad-row", examples=1)
def test_pad_row(subject: Subject, draw: Draw) -> None:
    fresh = Fresh(subject, draw)
    sizes, declared = fresh.given.sizes, subject.choices.pad_row_initialisation
    rows = {
        name: any(one[name][pad].any() for one in fresh.models)
        for name, pad in zip(EMBEDDINGS, (sizes.source_pad, sizes.target_pad), strict=True)
        if name in fresh.names
    }
    found = {"random" if drawn else "zero" for drawn in rows.values()}
    if declared == "unspecified":
        subject.note(f"pad_row_initialisation is not declared; measured: {' and '.join(found)}.")
        return
    wrong = [name for name, drawn in rows.items() if drawn != (declared == "random")]
    holds(
        not wrong,
        f"The row of the pad id is declared as {declared} at first, and in "
        f"{first_names(wrong)} it is not.",
    )


@check("initialisation.biases", examples=1)
def test_biases(subject: Subject, draw: Draw) -> None:
    fresh = Fresh(subject, draw)
    biases = [name for name in fresh.names if name.endswith("bias") and "norm" not in name]
    _judge(fresh, biases, "bias_initialisation")


@check("initialisation.norms", examples=1)
def test_norms(subject: Subject, draw: Draw) -> None:
    fresh = Fresh(subject, draw, count=1)
    (held,) = fresh.models
    norms = [name for name in fresh.names if "norm" in name]
    wrong = [name for name in norms if (held[name] != name.endswith("gain")).any()]
    holds(not wrong, f"Norms that begin with other numbers than 1 and 0: {first_names(wrong)}.")


@check("initialisation.centred", examples=1)
def test_centred(subject: Subject, draw: Draw) -> None:
    fresh = Fresh(subject, draw)
    for name in fresh.matrices():
        if "positions" in name:  # a learned table may begin as sines
            continue
        values = fresh.numbers(name)
        # Bounded numbers by Hoeffding; of normal ones the largest is a bound for this purpose.
        margin = largest(values) * sqrt(2 * _X / values.size)
        mean = float(values.mean())
        holds(
            abs(mean) <= margin, f"{name} has a mean of {mean:.4g}; by chance at most {margin:.2g}."
        )


@check("initialisation.varied", examples=1)
def test_varied(subject: Subject, draw: Draw) -> None:
    fresh = Fresh(subject, draw, count=1)
    (held,) = fresh.models
    for name in fresh.names:
        values = held[name]
        size = largest(values)
        holds(
            bool(np.isfinite(values).all()) and size <= _HUGE,
            f"The parameter {name} of a new model is not finite, or as large as {size:.3g}.",
        )
        constant = values.ndim > 1 and size > 0 and float(np.ptp(values)) == 0
        holds(not constant, f"All numbers of {name} are {size:.6g}.")


@check("initialisation.rows-differ", examples=1)
def test_rows_differ(subject: Subject, draw: Draw) -> None:
    fresh = Fresh(subject, draw, count=1)
    (held,) = fresh.models
    for name in fresh.matrices():
        rows = [row.tobytes() for row in held[name] if row.any()]
        twice = len(rows) - len(set(rows))
        holds(not twice, f"{twice} rows of {name} are equal to others.")


@check("initialisation.matrices-differ", examples=1)
def test_matrices_differ(subject: Subject, draw: Draw) -> None:
    fresh = Fresh(subject, draw, count=1)
    (held,) = fresh.models
    seen: dict[bytes, str] = {}
    for name in fresh.matrices():
        if held[name].any() and "positions" not in name:
            twin = seen.setdefault(held[name].tobytes(), name)
            holds(twin == name, f"{name} and {twin} have the same numbers in a new model.")


@check("initialisation.constructions-differ", examples=1)
def test_constructions_differ(subject: Subject, draw: Draw) -> None:
    fresh = Fresh(subject, draw, count=2)
    one, other = fresh.models
    drawn = [name for name in fresh.linear() if float(np.ptp(one[name])) > 0]
    if not drawn:
        raise Absent("the matrices are not random")
    differing = [name for name in drawn if not np.array_equal(one[name], other[name])]
    holds(bool(differing), "Two models that were built one after the other are equal.")


@check("initialisation.same-seed", examples=1)
def test_same_seed(subject: Subject, draw: Draw) -> None:
    seed = draw.integer(1, 10**6)
    one, other = Fresh(subject, draw, count=2, seed=seed).models
    differing = [name for name in one if not np.array_equal(one[name], other[name], equal_nan=True)]
    names = ", ".join(differing[:3])
    holds(
        not differing,
        f"Two models that were built after the same seed, {seed}, differ in {len(differing)} of "
        f"{len(one)} parameters: {names}.",
    )
