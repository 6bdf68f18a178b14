"""Checks of the chapter `positional_encoding`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attentest.cases import half, same_precision
from attentest.checks import check
from attentest.compare import as_floats, equal, finite, holds, largest, near, rounding, same_shape
from attentest.draw import Draw
from attentest.gradients import gradient_to
from attentest.outcome import Absent, BackendError, Violation
from attentest.refusal import refused
from attentest.subject import Probe, Subject
from attentest_spec import CHOICES, Sizes
from attentest_spec.precision import epsilon
from attentest_spec.setting import Array, Floats

WAVES = ("interleaved", "halves", "doubled-exponent")
"""The options that are made of sines and cosines."""

APART = 0.1
"""Two of the first 40 positions are at least 0.13 apart on the circle of the fastest pair alone."""


@dataclass(frozen=True)
class Case:
    """One call: the part and an input (B, S, D)."""

    probe: Probe
    x: Floats

    @property
    def option(self) -> str:
        """What is declared to be added."""
        return self.probe.subject.choices.positional_encoding

    def added(self, x: Floats | None = None) -> Floats:
        """Return what the backend adds to the input, or to another one."""
        given = self.x if x is None else x
        output = self.probe.output(given)
        same_shape(output, given.shape)
        rows: Floats = as_floats(output) - given
        return rows

    def table(self, option: str = "") -> Floats:
        """Return the rows (S, D) that are declared to be added, or those of another option."""
        choices = self.probe.subject.choices.but(positional_encoding=option or self.option)
        rows: Floats = self.probe.expected(np.zeros_like(self.x[:1]), choices=choices)[0]
        return rows

    def pairs(self, added: Floats) -> tuple[Floats, Floats]:
        """Return the sines and the cosines (.., S, pairs) in what is added."""
        width = added.shape[-1]
        if self.option == "halves":
            first = (width + 1) // 2
            return added[..., : width // 2], added[..., first:]
        return added[..., 0 : width - width % 2 : 2], added[..., 1::2]

    def size(self, x: Floats | None = None) -> Floats:
        """Return the magnitude (S,) of what is rounded: angles grow with the position.

        A table for half precision is made in single precision at least.
        """
        given = self.x if x is None else x
        unit = epsilon(self.probe.precision)
        arithmetic = min(unit, epsilon("float32")) / unit
        place = np.arange(given.shape[1], dtype=np.float64)
        return 1.0 + largest(given) + arithmetic * place


def drawn(
    subject: Subject,
    draw: Draw,
    *,
    lengths: tuple[int, int] = (2, 7),
    waves: bool = False,
    widths: Sequence[int] = (6, 4, 5, 12),
    precision: str = "",
    most: int = 0,
    **fixed: int,
) -> Case:
    """Draw a call; `waves` asks for sines and cosines, `most` is the longest that is built for."""
    if waves and subject.choices.positional_encoding not in WAVES:
        raise Absent(f"what is added is declared as {subject.choices.positional_encoding}")
    length = draw.length(*lengths)
    even = [width for width in widths if subject.limits.odd_width or width % 2 == 0]
    width = draw.choose(even)
    sizes = Sizes(d_model=width, heads=1, max_length=most or subject.limits.length or 40)
    parameters = draw.parameters("positional_encoding", sizes, precision=precision)
    probe = subject.part(
        "positional_encoding", sizes, parameters=parameters or None, precision=precision
    )
    batch = fixed.get("batch") or draw.batch()
    return Case(probe, draw.floats(batch, length, width, precision=precision))


def same_rows(
    case: Case, actual: Floats, wanted: Floats, size: Floats, *, what: str = "encoding added"
) -> None:
    """Demand equal rows (.., S, D), each up to the rounding of its `size`."""
    same_shape(actual, wanted.shape, what=what)
    apart = np.abs(actual - wanted).max(axis=-1) / size
    worst = int(np.argmax(np.where(np.isnan(apart), np.inf, apart)) % len(size))
    near(
        case.probe.subject,
        actual[..., worst, :],
        wanted[..., worst, :],
        size=float(size[worst]),
        precision=case.probe.precision,
        what=f"{what} at position {worst}",
    )


def follows(case: Case, added: Floats, *, x: Floats | None = None) -> None:
    """Demand that what is `added` to every sample is the declared table."""
    table = case.table()
    same_shape(added, (*added.shape[:-2], *table.shape))
    same_rows(case, added, np.broadcast_to(table, added.shape), case.size(x))


def tells(case: Case, added: Floats) -> None:
    """Demand that what is added tells the last position from the one before, if it is declared to.

    A position alone has to be given half of what is declared.
    """
    table = case.table()
    found, declared = (
        largest(rows[..., -1, :] - (rows[..., -2, :] if len(table) > 1 else 0.0))
        for rows in (added, table)
    )
    finite(added, what="encoding added")
    holds(
        found >= declared / 2,
        f"The last of {len(table)} positions is told apart by {found:.3g}; its row is declared to "
        f"do so by {declared:.3g}.",
        actual=added,
    )


def share(case: Case, added: Floats, table: Floats) -> float:
    """Return the largest difference, as a share of what rounding allows."""
    apart = np.abs(added - table).max(axis=-1) / case.size()
    return float(apart.max() / rounding(case.probe.precision, 1))


@check("positional_encoding.formula")
def test_formula(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, lengths=(2, 12) if (subject.limits.length or 2) > 1 else (1, 1))
    added = case.added()
    follows(case, added)
    wide = drawn(subject, draw, lengths=(1, 3), widths=(66, 130))
    follows(wide, wide.added())
    for option in CHOICES["positional_encoding"].options:
        if option.name in (case.option, "learned"):
            continue
        table = case.table(option.name)
        if share(case, case.table(), table) > 2:
            holds(
                share(case, added, table) > 1,
                f"{case.option} is declared, and the numbers are those of {option.name}.",
            )


@check("positional_encoding.far-positions", examples=3)
def test_far_positions(subject: Subject, draw: Draw) -> None:
    wanted = draw.choose((5000, 1200))
    length = min(wanted, subject.limits.length or wanted)
    case = drawn(subject, draw, lengths=(length, length), waves=True, most=length, batch=1)
    zeros = np.zeros_like(case.x)
    follows(case, case.added(zeros), x=zeros)


@check("positional_encoding.first-row", examples=6)
def test_first_row(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, lengths=(1, 4), waves=True)
    first = case.added()[:, :1]
    sines, cosines = case.pairs(first)
    width = case.x.shape[-1]
    if width % 2:
        alone = width // 2 if case.option == "halves" else width - 1
        sines = np.concatenate((sines, first[..., alone : alone + 1]), axis=-1)
    size = case.size()[:1]
    same_rows(case, sines, np.zeros_like(sines), size, what="sines added")
    same_rows(case, cosines, np.ones_like(cosines), size, what="cosines added")


@check("positional_encoding.bounded", examples=6)
def test_bounded(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, lengths=(2, 40), waves=True)
    added = case.added()
    tells(case, added)
    beyond = np.maximum(np.abs(added) - 1.0, 0.0)
    same_rows(
        case, beyond, np.zeros_like(beyond), case.size(), what="distance from -1 and 1 of what is"
    )


@check("positional_encoding.pairs-on-circle", examples=6)
def test_pairs_on_circle(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, lengths=(2, 40), waves=True)
    sines, cosines = case.pairs(case.added())
    squares = sines**2 + cosines**2
    # An error of one unit in both changes the sum of the squares by 2 (|sin| + |cos|) units.
    same_rows(case, squares, np.ones_like(squares), 3 * case.size(), what="sum of squares")


@check("positional_encoding.shift-is-rotation", examples=6)
def test_shift_is_rotation(subject: Subject, draw: Draw) -> None:
    shift = draw.integer(1, min(5, (subject.limits.length or 7) - 2) or 1)
    case = drawn(subject, draw, lengths=(shift + 2, 24), waves=True)
    sines, cosines = case.pairs(case.added())
    hands = cosines + 1j * sines
    turns = hands[:, shift:] * hands[:, :-shift].conj()
    parts = np.concatenate((turns.real, turns.imag), axis=-1)
    # Both hands of a turn are off by up to the root of 2 units, and two turns are compared.
    size = 6 * case.size()[shift:]
    same_rows(
        case,
        parts,
        np.broadcast_to(parts[:, :1], parts.shape),
        size,
        what=f"turn by a shift of {shift}",
    )
    fastest = float(np.abs(turns[:, :, 0] - 1).min())
    holds(fastest > APART, f"A shift of {shift} turns the fastest pair by no more than {fastest}.")


@check("positional_encoding.rows-differ", examples=6)
def test_rows_differ(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, lengths=(2, 40), waves=True, batch=1)
    zeros = np.zeros_like(case.x)
    rows = case.added(zeros)[0]
    apart = np.linalg.norm(rows[:, None] - rows[None], axis=-1) + 9 * np.eye(len(rows))
    finite(apart, what="distance of the rows")
    one, other = sorted(int(place) for place in np.unravel_index(apart.argmin(), apart.shape))
    holds(
        apart.min() > APART,
        f"The positions {one} and {other} are given rows that lie {apart.min():.3g} apart.",
    )


@check("positional_encoding.prefix", examples=6)
def test_prefix(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, lengths=(2, 9))
    whole = case.added()
    tells(case, whole)
    for length in sorted({1, draw.integer(1, case.x.shape[1] - 1), case.x.shape[1] - 1}):
        start = case.added(case.x[:, :length])
        same_rows(case, start, whole[:, :length], case.size()[:length])


@check("positional_encoding.added", examples=8)
def test_added(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw)
    before = case.added()
    tells(case, before)
    other = draw.floats(*case.x.shape, scale=draw.choose((1.0, 30.0, 1e-3, 1e3)))
    other[-1, -1] = 0.0
    same_rows(
        case, case.added(other), before, case.size(other) + case.size(), what="encoding of another"
    )


@check("positional_encoding.indexed-by-position", examples=8)
def test_indexed_by_position(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, batch=draw.choose((3, 2)))
    together = case.added()
    tells(case, together)
    size = 2 * case.size()
    first = np.broadcast_to(together[:1], together.shape)
    same_rows(case, together, first, size, what="encoding of all samples")
    for number in range(len(case.x)):
        alone = case.added(case.x[number : number + 1])
        same_rows(case, alone, together[:1], size, what=f"encoding of sample {number} alone")


@check("positional_encoding.shapes", examples=6)
def test_shapes(subject: Subject, draw: Draw) -> None:
    known = [one for one in ("float32", "float64") if one in subject.limits.precisions]
    precision = draw.choose([subject.precision, *known])
    case = drawn(subject, draw, lengths=(1, 4), precision=precision)
    for x in (case.x, case.x[:1], case.x[:, :1], case.x[:1, :1]):
        output = case.probe.output(x)
        same_shape(output, x.shape)
        same_precision(case.probe, output)
    tells(case, case.added())


@check("positional_encoding.every-length-served", examples=4)
def test_every_length_served(subject: Subject, draw: Draw) -> None:
    most = draw.length(1, 8)
    case = drawn(subject, draw, lengths=(most, most), most=most)
    for length in range(1, most + 1):
        part = Case(case.probe, case.x[:, :length])
        tells(part, part.added())


@check("positional_encoding.too-long", examples=6)
def test_too_long(subject: Subject, draw: Draw) -> None:
    length = draw.length(2, 9)
    most = draw.integer(1, length - 1)
    case = drawn(subject, draw, lengths=(length, length), most=most)
    added = _served(subject, f"{length} positions, built for {most}", case.added, (length, most))
    if added is None:
        return
    holds(
        case.option != "learned",
        f"{length} positions are served by a learned table of {most} rows.",
    )
    follows(case, added)


def _served(
    subject: Subject, doing: str, action: Callable[[], Floats], names: Sequence[int]
) -> Floats | None:
    """Return what `action` gives, or None where it is refused and one of `names` is named."""
    try:
        return action()
    except BackendError as error:
        broken = error
    found: list[Violation] = []
    for name in names:
        try:
            refused(subject, doing, lambda: _again(broken), naming=(name,))
            return None
        except Violation as violation:
            found.append(violation)
    raise found[0]


def _again(error: BackendError) -> None:
    raise error


@check("positional_encoding.odd-width", examples=6)
def test_odd_width(subject: Subject, draw: Draw) -> None:
    width = draw.choose((5, 7, 3, 1))
    length = draw.length(2, 5)
    sizes = Sizes(d_model=width, heads=1, max_length=length)
    parameters = draw.parameters("positional_encoding", sizes)
    x = draw.floats(draw.batch(), length, width)
    made: list[Case] = []

    def computed() -> Floats:
        probe = subject.part("positional_encoding", sizes, parameters=parameters or None)
        made.append(Case(probe, x))
        return made[0].added()

    added = _served(subject, f"an odd width of {width}", computed, (width,))
    if added is not None:
        follows(made[0], added)


@check("positional_encoding.not-trained", examples=2)
def test_not_trained(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, most=draw.length(7, 9))
    tells(case, case.added())
    held = case.probe.do("listing what it holds", lambda part: part.inventory())
    trained = {
        name: tuple(facts["shape"])
        for name, facts in held["parameters"].items()
        if facts.get("trained", True)
    }
    if case.option == "learned":
        sizes = case.probe.sizes
        wanted = sizes.max_length * sizes.d_model
        enough = any(np.prod(shape, dtype=int) >= wanted for shape in trained.values())
        holds(enough, f"A learned table is declared; the trained parameters are {trained}.")
    else:
        holds(not trained, f"{case.option} is declared; there are trained parameters: {trained}.")


@check("positional_encoding.not-saved", examples=2)
def test_not_saved(subject: Subject, draw: Draw) -> None:
    most = draw.length(13, 20)  # more positions than columns: a frequency each may be saved
    case = drawn(subject, draw, most=most, waves=True)
    tells(case, case.added())
    held = case.probe.do("listing what it saves", lambda part: part.inventory())
    saved = {
        name: tuple(shape)
        for name, shape in held["state"].items()
        if np.prod(shape, dtype=int) >= most
    }
    holds(not saved, f"What is saved grows with the longest length, here {most}: {saved}.")


@check("positional_encoding.follows-moves", examples=3)
def test_follows_moves(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, lengths=(2, 5))
    _follows_to_device(case)
    others = [
        one
        for one in ("float32", "float64", "bfloat16")
        if one in subject.limits.precisions and one != subject.precision
    ]
    if not others:
        return
    precision = others[0]
    _independent_of_others(subject, draw, precision)
    moved = case.probe.become(
        f"moving it to {precision}", lambda part: part.moved(precision=precision), precision
    )
    x = np.zeros_like(case.x)
    output = moved.output(x)
    same_precision(moved, output)
    # What was rounded before the move stays rounded: the coarser precision of the two counts.
    coarse = max((subject.precision, precision), key=epsilon)
    judged = case if coarse == subject.precision else Case(moved, x)
    follows(judged, as_floats(output), x=x)


def _independent_of_others(subject: Subject, draw: Draw, precision: str) -> None:
    """Demand the declared rows after another part has been asked for as many, less exactly.

    No other check draws this width: a table that is shared is made here.
    """
    for one in (precision, subject.precision):
        case = drawn(subject, draw, lengths=(5, 5), widths=(14,), precision=one)
        x = np.zeros_like(case.x)
        follows(case, case.added(x), x=x)


def _follows_to_device(case: Case) -> None:
    """Demand that no array stays behind when the part is moved, and that it computes there."""
    held = case.probe.do(
        "listing what it holds on the device meta",
        lambda part: part.moved(device="meta").inventory(),
    )
    arrays = {**held["parameters"], **held["buffers"], **held["loose"]}
    behind = sorted(
        name
        for name, facts in arrays.items()
        if facts["device"] != "meta" and np.prod(facts["shape"], dtype=int) > case.x.shape[-1]
    )
    holds(not behind, f"Moved to the device meta, it leaves behind: {', '.join(behind)}.")
    place = case.probe.do(
        "asking where the output lies on the device meta",
        lambda part: part.placed((case.x,), "meta"),
    )
    holds(place == "meta", f"For an input on the device meta the output lies on {place}.")


@check("positional_encoding.half-precision", examples=4)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    precision = half(subject, draw)
    wanted = draw.choose((2500, 600))
    length = min(wanted, subject.limits.length or wanted)
    case = drawn(
        subject,
        draw,
        lengths=(length, length),
        waves=True,
        most=length,
        batch=1,
        precision=precision,
    )
    zeros = np.zeros_like(case.x)
    output = case.probe.output(zeros)
    same_precision(case.probe, output)
    follows(case, as_floats(output), x=zeros)


@check("positional_encoding.gradient-is-identity", examples=4)
def test_gradient_is_identity(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw)
    cotangent = draw.floats(*case.x.shape)
    gradient = case.probe.vjp((case.x,), cotangent)
    same_shape(gradient.output, case.x.shape)
    tells(case, as_floats(gradient.output) - case.x)
    equal(gradient_to(gradient, 0, "input", case.x.shape), cotangent, what="gradient of the input")


@check("positional_encoding.input-untouched", examples=4)
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw)
    first: Array = case.added()  # the probe compares the input with a copy after every call
    tells(case, first)
    given = case.probe.output(case.x)
    kept = given.copy()
    case.added(case.x + 1.0)
    equal(given, kept, what="output of a call, looked at after another,")
    equal(case.added(), first, what="encoding added by another call")
