"""Checks of the chapter `positional_encoding`: lengths and widths, served and refused."""

from attentest.harness.errors import BackendError
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_positional_encoding.cases import (
    EncodingCall,
    draw_call,
    matches_table,
    separates_positions,
)
from attentest.testing.assertions import holds
from attentest.testing.draw import Draw
from attentest.testing.refusal import explains_refusal, require_index_errors
from attentest_spec import Sizes
from attentest_spec.parameters import learned_positions
from attentest_spec.setting import Floats


@check("positional_encoding.every-length-served")
def test_every_length_served(subject: Subject, draw: Draw) -> None:
    most = draw.length(min(2, subject.limits.length or 2), 8)
    case = draw_call(subject, draw, lengths=(most, most), most=most)
    for length in range(1, most + 1):
        part = EncodingCall(case.probe, case.x[:, :length])
        separates_positions(part, part.added())


@check("positional_encoding.too-long")
def test_too_long(subject: Subject, draw: Draw) -> None:
    case, length, most = _beyond(subject, draw)
    try:
        added = case.added()
    except BackendError:
        return
    holds(
        not learned_positions(subject.choices),
        f"{length} positions are served by a learned table of {most} rows.",
    )
    matches_table(case, added)


@check("positional_encoding.too-long-named", examples=2)
def test_too_long_named(subject: Subject, draw: Draw) -> None:
    case, length, most = _beyond(subject, draw)
    doing = f"an input of {length} positions, built for {most},"
    explains_refusal(subject, doing, case.added, naming=(length, most), any_of_them=True)


def _beyond(subject: Subject, draw: Draw) -> tuple[EncodingCall, int, int]:
    """Draw an input that is too long; return its length and the greatest one, too."""
    require_index_errors(subject)
    length = draw.length(3, 9)
    most = draw.integer(2, length - 1)  # a table of one row is broadcast, as PyTorch adds tensors
    return draw_call(subject, draw, lengths=(length, length), most=most), length, most


@check("positional_encoding.odd-width")
def test_odd_width(subject: Subject, draw: Draw) -> None:
    try:
        case, added = _computed(subject, draw, *_odd(draw))
    except BackendError:
        return
    matches_table(case, added)


@check("positional_encoding.odd-width-named", examples=2)
def test_odd_width_named(subject: Subject, draw: Draw) -> None:
    sizes, x = _odd(draw)
    width = sizes.d_model
    explains_refusal(
        subject,
        f"an odd width of {width}",
        lambda: _computed(subject, draw, sizes, x),
        naming=(width,),
    )


def _odd(draw: Draw) -> tuple[Sizes, Floats]:
    """Draw sizes with an odd width, whatever the limits are, and an input.

    Code that refuses odd widths need not refuse 1 and 3: the sum of a column and a pair is two
    columns, and the only frequency of three columns may be given to two of them.
    """
    length = draw.length(2, 5)
    widths = (5, 7, 3, 1) if draw.subject.limits.odd_width else (5, 7)
    sizes = Sizes(d_model=draw.choose(widths), heads=1, max_length=length)
    return sizes, draw.floats(draw.batch(), length, sizes.d_model)


def _computed(subject: Subject, draw: Draw, sizes: Sizes, x: Floats) -> tuple[EncodingCall, Floats]:
    """Return the call and what it adds; raises what building and calling raise."""
    parameters = draw.parameters("positional_encoding", sizes)
    case = EncodingCall(
        subject.part("positional_encoding", sizes, parameters=parameters or None), x
    )
    return case, case.added()
