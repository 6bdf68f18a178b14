"""Names of schedules, their steps, sizes and optimisers; the question where one is missing."""

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import WIDTH, words
from attentest.targets.adapt.reading import Attempt, Reading, Unclear

NAMES = re.compile(
    r"(get|compute|calc|calculate|current|adjust)?(the)?"
    r"(lr|rate|learningrate|noam\w*|lrschedule|lrlambda|lrat|rateat|learningrateat|"
    r"learningrateschedule|warmupschedule|transformerschedule|scheduledoptim|customschedule)"
    r"(at|for|of)?(step)?"
)
"""Names of schedules."""

STEP = words(
    "step steps stepnum stepnumber currentstep globalstep curstep numstep it iter iteration "
    "iternum numupdates update updatenum n t i nstep nsteps"
)
SIZES: Mapping[str, Sequence[str]] = {
    "d_model": WIDTH,
    "warmup": words(
        "warmup warmupsteps numwarmupsteps nwarmupsteps warmupiters warmupupdates nwarmup "
        "numwarmup warmupstep warm warmsteps numofwarmupsteps nbwarmupsteps warmupiterations "
        "numwarmupiterations nwarmupiters"
    ),
    "total_steps": words(
        "totalsteps numtrainingsteps trainingsteps maxsteps maxiters lrdecayiters decaysteps "
        "total maxupdates tmax numsteps laststep trainsteps ttotal totaliters numtotalsteps "
        "totalnumsteps totalupdates cosinecycleiters cosineiters cosinesteps cycleiters cyclesteps "
        "maxdecaysteps"
    ),
    "factor": words(
        "factor scale lrmul multiplier lr baselr maxlr peaklr initlr learningrate peak lrmax "
        "coefficient peakrate maxrate baserate peaklearningrate maxlearningrate"
    ),
}
"""Names of the sizes of a schedule."""

LAST = words(
    "minlr lrmin minlearningrate etamin finallr endlr lrend minrate minlrratio minlrrate minratio"
)
"""Names of the last rate, or of its ratio to the greatest one."""

SHARES = words(
    "warmupratio warmupproportion warmupfraction warmuppct warmuppercent warmupshare pctstart "
    "warmupfrac warmuprate"
)
"""Names of the warm-up as a share of all steps."""

FIRST = words(
    "warmupstartlr warmupinitlr startwarmuplr warmupstartrate warmupstartfactor lrstart startlr"
)
"""Names of the rate that a warm-up begins with, or of its ratio to the greatest one."""

AFTER = words(
    "lrscheduler afterscheduler scheduler basescheduler mainscheduler nextscheduler schedulerafter"
)
"""Names of the scheduler that goes on after a warm-up."""

OF_WARMUPS = words("totalepoch totalepochs epochs numepochs totalsteps numsteps steps totaliters")
"""Names of the length of a warm-up in what is called a warm-up."""

WARMUPS = (*SIZES["warmup"], *SHARES)
"""Names of the warm-up, in steps or as a share of them."""

METHODS = ("__call__", "rate", "get_lr", "lr", "get_rate", "lr_at", "learning_rate", "get")
"""Methods that take a step, the likeliest first."""

OPTIMIZERS = ("optimizer", "optim", "opt", "optimiser")


def sizes_in(names: Iterable[str], reading: Reading) -> dict[str, str]:
    """Return the arguments that carry sizes, each with its size."""
    named = {own: size for size, own in reading.arguments.items() if size in SIZES}
    found: dict[str, str] = {}
    for name in names:
        word = squashed(name)
        meant = "warmup" if word in SHARES else ""
        size = named.get(name) or meant
        size = size or next((one for one, words in SIZES.items() if word in words), "")
        if size and size not in found.values() and name not in reading.given:
            found[name] = size
    return found


def is_share(own: str) -> bool:
    """Say whether the argument `own` is a warm-up as a share of all steps, by its name."""
    return squashed(own) in SHARES


def first_rates(arguments: Mapping[str, inspect.Parameter], reading: Reading) -> tuple[str, ...]:
    """Return the arguments that are a first rate, and not 0 by default or as you say."""
    return tuple(
        own
        for own, one in arguments.items()
        if squashed(own) in FIRST and own not in reading.given and one.default not in (0, None)
    )


def last_rates(names: Iterable[str], reading: Reading) -> tuple[str, ...]:
    """Return those of the names that are a last rate, and have no value that you give."""
    return tuple(one for one in names if squashed(one) in LAST and one not in reading.given)


class _Read(Protocol):
    """The call of a schedule, as far as its arguments are concerned."""

    @property
    def roles(self) -> Mapping[str, str]: ...

    @property
    def optimizer(self) -> str: ...

    @property
    def fixed(self) -> Mapping[str, Any]: ...


def _attempts(own: str, roles: Mapping[str, str]) -> list[Attempt]:
    """Return what the argument `own`, which alone has no meaning, may be: the last step, or 1."""
    last = [Attempt(arguments={"total_steps": own})] * ("total_steps" not in roles.values())
    return [*last, *(Attempt(given={own: one}) for one in (0.5, 1))]


def require_sizes(
    own: str, found: _Read, arguments: Mapping[str, inspect.Parameter], reading: Reading
) -> None:
    """Raise Unclear where an argument has no meaning, or none is the warm-up."""
    known = {*found.roles.values(), found.optimizer, *found.fixed, getattr(found, "after", "")}
    missing = [
        one
        for one, what in arguments.items()
        if what.default is inspect.Parameter.empty
        and what.kind not in (what.VAR_POSITIONAL, what.VAR_KEYWORD)
        and one not in known
    ]
    if missing:
        raise Unclear(
            f"Nothing says what the argument {missing[0]!r} of {own} carries. Say it with "
            f"--argument SIZE={missing[0]}, SIZE being one of {', '.join(SIZES)}, or fix it "
            f"with --give {missing[0]}=VALUE.",
            attempts=_attempts(missing[0], found.roles) * (len(missing) == 1),
        )
    if "warmup" not in found.roles:
        raise Unclear(
            f"No argument of {own} says how long the warm-up is, and it is judged at several "
            f"lengths. Make it an argument, or say with --argument warmup=NAME which one it is."
        )
