"""Optimisers as classes with a step, and functions that clip gradients.

The constants are measured; where the numbers fit none, those in the signature are declared.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attentest.analysis.identify import Finding, identify
from attentest.results.text import summary
from attentest.targets.adapt import trust
from attentest.targets.adapt.assumptions.choices import assumed, chosen, declared_choices, measured
from attentest.targets.adapt.components import squashed, words_of
from attentest.targets.adapt.names import words
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.writing.adapted import adapted_file
from attentest.targets.origin import Origin, origin
from attentest.targets.single import SINGLE, rounds_to_single
from attentest_spec import CHOICES, Sizes
from attentest_spec.choices import PAPER, Value
from attentest_spec.contract import Input
from attentest_spec.torch import Recipe, TorchBackend

_NAMES: Mapping[str, tuple[str, ...]] = {
    "optimiser": tuple(words("adam adamw myadam adamoptimizer adamoptimiser customadam")),
    "gradient_clipping": tuple(
        words(
            "clipgradients clipgradient clipgradnorm clipgrad clipgrads gradclipping gradclip "
            "clipgradientnorm gradientclipping clipgradnorms clipbyglobalnorm"
        )
    ),
}
_EMPTY = words("my get apply do run perform custom own")
"""First words of a name that say nothing of what it is."""
_GUESSES = frozenset(("adam", "adamw"))
"""Words of which one in the name of a class says that it may be Adam: its numbers confirm it."""

_PARAMETERS = words("params parameters modelparams modelparameters")
_MODULE = words("net model module network")
_GRADIENTS = words("grads gradients grad gradient")
_RATE = words("lr learningrate rate alpha stepsize")
_LISTS = re.compile(r"(\w+\.)*(Mutable)?([lL]ist|[tT]uple|Sequence)\b")
"""The annotations of arguments that get no generator."""
_LIMIT = words(
    "maxnorm maxl2norm l2norm maxgrad limit clip theta threshold clipvalue clipnorm maxgradnorm "
    "gradclip c"
)
CONSTANTS = ("adam_beta1", "adam_beta2", "adam_epsilon")
_BETAS = (float(PAPER.adam_beta1), float(PAPER.adam_beta2))
_USUAL: Mapping[str, Any] = {
    "betas": _BETAS,
    **dict.fromkeys(("beta1", "b1"), _BETAS[0]),
    **dict.fromkeys(("beta2", "b2"), _BETAS[1]),
    **dict.fromkeys(("eps", "epsilon"), float(PAPER.adam_epsilon)),
    **dict.fromkeys(("weightdecay", "wd"), 0.0),
}
"""Values of constants that a constructor requires: every value is judged by one formula."""


@dataclass(frozen=True, kw_only=True)
class AdaptedOptimiser(TorchBackend):
    """A backend made of an optimiser, or of a function that clips gradients."""

    understood: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    summary: str = ""
    place: Origin
    component: str

    def written(self) -> str:
        """Return the adapter as the text of a Python file."""
        options = {"component": self.component, "choices": dict(self.choices)}
        return adapted_file(self.name, self.place, options, self.understood)


def component_of(thing: Any, reading: Reading, name: str) -> str:
    """Return which of the two components `thing` is, as you say or by its name, "" for none."""
    if reading.component:
        return reading.component if reading.component in _NAMES else ""
    called = name or getattr(thing, "__name__", "")
    first, *rest = words_of(called) or [""]
    own = {squashed(called), "".join(rest) if first in _EMPTY else ""}
    found = next((one for one, names in _NAMES.items() if own & {*names}), "")
    if not found and _GUESSES.intersection(words_of(called)):
        found = "optimiser"
    wanted = inspect.isclass if found == "optimiser" else inspect.isroutine
    return found if wanted(thing) else ""


def adapt_optimiser(
    thing: Any, component: str, reading: Reading, name: str, home: ModuleType | None = None
) -> AdaptedOptimiser:
    """Return `thing` as a backend; Unclear where it does not say how it is built or called."""
    own = name or thing.__name__
    asked = reading.choices.get("weight_decay")
    call = _stepping(thing, own, asked) if component == "optimiser" else _clipping(thing, own)
    recipe = Recipe(build=lambda sizes: sizes, call=call.recipe)
    backend = AdaptedOptimiser(
        name=own,
        title=f"{own}, read as {component}",
        recipes={component: recipe},
        place=origin(thing, home, own),
        component=component,
    )
    _probe(backend, component, own)
    if component == "gradient_clipping" and not reading.anyway:
        _require_global(backend, own)
    findings = identify(backend, (component,))
    if not (trust.explained(findings) or reading.strict):
        single = _single_alone(backend, component, call.recipe)
        backend, findings = single or (backend, findings)
    shown = measured(findings) if trust.explained(findings) else call.constants
    named = reading.component or squashed(own) in _NAMES[component]
    constants = {*reading.choices, *(call.constants if named else ())}
    is_known = constants.issuperset(CONSTANTS) or reading.anyway
    if component == "optimiser" and not (trust.explained(findings) or is_known):
        raise Unclear(
            f"The updates of {own} are those of no listed Adam, and its signature does not say "
            f"which constants it has. Say them with --choice adam_beta1=.., adam_beta2=.. and "
            f"adam_epsilon=..; then it is judged by these."
        )
    if component == "optimiser":
        shown = {**shown, **_place_of_small_epsilon(backend, thing, own, asked, shown)}
    is_idle = call.is_without_decay and asked is None and trust.explained(findings)
    idle = _idle_decay(backend, thing, own) if is_idle else ()
    if asked is None:
        _require_named_decay(own, shown.get("weight_decay"))
    declared = declared_choices(shown, reading)
    judged_as = f"{own} is judged as {component}"
    is_single = "float64" not in backend.limits.precisions
    doubts = (*assumed(declared, reading), *[SINGLE] * is_single)
    return replace(
        backend,
        choices=declared,
        understood=(judged_as, call.words, *doubts, *idle, *chosen(declared, reading)),
        assumed=doubts,
        summary=f"{own} called ({call.words})",
    )


@dataclass(frozen=True)
class _Way:
    """A way of calling: the function of a recipe, in words, and the constants in the signature.

    `is_without_decay` says that it has an argument for the weight decay, which stays at 0.
    """

    recipe: Callable[..., Any]
    words: str
    constants: Mapping[str, Value]
    is_without_decay: bool = False


_VALUES = np.array([1.0, -2.0, 0.5])
_GIVEN: Mapping[str, tuple[Input, ...]] = {
    "optimiser": (_VALUES, np.stack([_VALUES, -_VALUES]), np.full(2, 0.1)),
    "gradient_clipping": (_VALUES, np.array([1, 2]), np.array(1.0)),
}
"""The inputs of a probing call."""


def _probe(backend: TorchBackend, component: str, own: str) -> None:
    """Refuse code that fails in an ordinary call."""
    try:
        backend.build(component, Sizes())(*_GIVEN[component])
    except Unclear:
        raise
    except Exception as failure:  # code that a user wrote may raise anything
        raise Unclear(f"{own} failed in a probing call: {summary(failure)}.") from failure


def _single_alone(
    backend: AdaptedOptimiser, component: str, call: Callable[..., Any]
) -> tuple[AdaptedOptimiser, dict[str, Finding]] | None:
    """Return `backend` in single precision and what is measured in it, where it rounds to that."""
    given = [torch.from_numpy(np.asarray(one)) for one in _GIVEN[component]]

    def answer() -> Tensor:
        made = call(Sizes(), *given)
        return made if isinstance(made, Tensor) else torch.stack([*made])

    if not rounds_to_single(answer):
        return None
    rest = tuple(one for one in backend.limits.precisions if one != "float64")
    rounded = replace(backend, limits=replace(backend.limits, precisions=rest))
    findings = identify(rounded, (component,))
    return (rounded, findings) if trust.explained(findings) else None


def _require_global(backend: TorchBackend, own: str) -> None:
    """Raise Unclear for code that clips every gradient by itself, or every number."""
    values, sizes, limit = np.array([3.0, 4.0, 0.3, -0.4, 12.0]), np.array([2, 2, 1]), 1.0
    found = backend.build("gradient_clipping", Sizes())(values, sizes, np.array(limit))
    parts = np.split(values, np.cumsum(sizes)[:-1])
    by_norm = [one * min(1.0, limit / float(np.linalg.norm(one))) for one in parts]
    designs = {
        "every gradient by its own norm": np.concatenate(by_norm),
        "every number by its own size": values.clip(-limit, limit),
    }
    for design, expected in designs.items():
        if np.allclose(np.asarray(found), expected, atol=1e-4):
            raise Unclear(
                f"{own} clips {design}, and not all by one norm. If that is meant, the spec "
                f"has no place for it; with --anyway it is judged by the global norm."
            )


def _argument(names: Iterable[str], known: Sequence[str]) -> str:
    return next((one for one in names if squashed(one) in known), "")


def _place_of_small_epsilon(
    backend: AdaptedOptimiser,
    thing: Any,
    own: str,
    asked: Value | None,
    shown: Mapping[str, Value],
) -> dict[str, Value]:
    """Return where an epsilon is added that is too small to show it, {} for others.

    A larger one is given for that, where the constructor takes one.
    """
    value = shown.get("adam_epsilon")
    name = _argument(inspect.signature(thing).parameters, ("eps", "epsilon"))
    if not isinstance(value, float) or value >= _SMALL or not name:
        return {}
    call = _stepping(thing, own, asked, {name: _LARGER})
    given = replace(backend, recipes={"optimiser": Recipe(lambda sizes: sizes, call.recipe)})
    findings = identify(given, ("optimiser",))
    place = findings[_PLACE].measured
    return {_PLACE: place} if place is not None and trust.explained(findings) else {}


_PLACE, _SMALL, _LARGER = "adam_epsilon_place", 1e-12, 1e-8
"""The choice of a place, the epsilons that do not show it, and one that does."""


def _idle_decay(backend: AdaptedOptimiser, thing: Any, own: str) -> tuple[str]:
    """Say which decay code has whose default is none; Unclear where it is that of no option."""
    options = [one for one in CHOICES["weight_decay"].names if one != PAPER.weight_decay]
    call = _stepping(thing, own, options[0])
    given = replace(backend, recipes={"optimiser": Recipe(lambda sizes: sizes, call.recipe)})
    findings = identify(given, ("optimiser",))
    found = findings["weight_decay"].measured
    if found in options and trust.explained(findings):
        _require_named_decay(own, found)
        return (f"weight_decay is 0, as by default; where it is given, it is {found}",)
    raise Unclear(
        f"{own} has no weight decay by default. Where one is given, its updates are those of none "
        f"of {', '.join(options)}. Say which is meant with --choice weight_decay=.., and it is "
        f"judged by that; --choice weight_decay={PAPER.weight_decay} judges it without."
    )


def _require_named_decay(own: str, decay: Value | None) -> None:
    """Raise Unclear for code that is called AdamW, and has the decay that AdamW replaces."""
    if "adamw" in squashed(own) and decay == "coupled":
        raise Unclear(
            f"The name {own} says that weights are multiplied by 1 - rate times decay before the "
            f"update, and its updates are those of a decay that is added to the gradient. Say "
            f"which is meant: --choice weight_decay=decoupled or --choice weight_decay=coupled."
        )


def _stepping(
    thing: Any, own: str, asked: Value | None, more: Mapping[str, Any] | None = None
) -> _Way:
    """Return how a class of optimisers is run: built with a list of parameters, then stepped.

    It gets a weight decay where its default is one, or where one is `asked` for, and `more`.
    """
    made = inspect.signature(thing).parameters
    step = inspect.signature(thing.step).parameters if hasattr(thing, "step") else {}
    held = _argument(made, _PARAMETERS)
    rate, passed = _argument(made, _RATE), _argument(step, _RATE)
    decay = _argument(made, ("weightdecay", "wd"))
    usual = (
        bool(decay) and isinstance(made[decay].default, int | float) and bool(made[decay].default)
    )
    decays = usual if asked is None else bool(decay) and asked != PAPER.weight_decay
    required = {
        name: _USUAL[squashed(name)]
        for name, one in made.items()
        if one.default is one.empty and squashed(name) in _USUAL
    }
    if not (held and step):
        raise Unclear(
            f"{own} is judged as an optimiser: a class that is built with its parameters, in an "
            f"argument called params or parameters, and has a method step."
        )

    def updates(
        sizes: Sizes, values: Tensor, gradients: Iterable[Tensor], rates: Iterable[Tensor]
    ) -> Iterator[Tensor]:
        parameter, built = nn.Parameter(values.detach().clone()), None
        plain = (float(one.detach()) for one in rates)
        for gradient, now in zip(gradients, plain, strict=True):
            if built is None:
                given = {**required, **(more or {}), held: [parameter]}
                given |= {decay: sizes.weight_decay} if decays else {}
                built = _made(thing, given, {rate: now} if rate else {})
            parameter.grad = gradient.detach().clone()
            if passed:
                built.step(**{passed: now})
            else:
                _set_rate(built, now, own)
                built.step()
            yield parameter.detach().clone()

    words = f"{held} as a list of one parameter"
    given = {name: made[name].replace(default=value) for name, value in required.items()}
    return _Way(updates, words, _constants({**made, **given}), bool(decay) and not decays)


def _made(thing: Any, given: Mapping[str, Any], rate: Mapping[str, float]) -> Any:
    """Return the optimiser `thing`; one that refuses a rate of 0 is built with another one.

    Its steps get the rate that is asked for, as they do from a schedule with a warmup.
    """
    try:
        return thing(**given, **rate)
    except ValueError:
        if not rate or any(rate.values()):
            raise
        return thing(**given, **dict.fromkeys(rate, 1.0))


def _set_rate(built: Any, rate: float, own: str) -> None:
    """Set the rate of the next step; Unclear where nothing holds it."""
    if hasattr(built, "param_groups"):
        built.param_groups[0]["lr"] = rate
    elif name := _argument(vars(built), _RATE):
        setattr(built, name, rate)
    else:
        raise Unclear(f"Nothing sets the rate of a step of {own}: no attribute lr, no argument.")


def _constants(made: Mapping[str, inspect.Parameter]) -> dict[str, Value]:
    """Return the constants among the defaults of a constructor."""
    plain = {squashed(name): one.default for name, one in made.items()}
    betas = plain.get("betas")
    pair = betas if isinstance(betas, tuple) and len(betas) == 2 else (None, None)
    first = (plain.get("beta1", plain.get("b1", pair[0])), float(PAPER.adam_beta1))
    second = (plain.get("beta2", plain.get("b2", pair[1])), float(PAPER.adam_beta2))
    epsilon = (plain.get("eps", plain.get("epsilon")), float(PAPER.adam_epsilon))
    every = dict(zip(CONSTANTS, (first, second, epsilon), strict=True))
    return {
        name: PAPER[name] if value == paper else value
        for name, (value, paper) in every.items()
        if isinstance(value, float)
    }


def _clipping(thing: Any, own: str) -> _Way:
    """Return how a function that clips gradients is called, in the way its first argument says."""
    names = inspect.signature(thing).parameters
    limit = _argument(names, _LIMIT)
    kinds = {"parameters": _PARAMETERS, "module": _MODULE, "gradients": _GRADIENTS}
    kind, held = next(
        ((kind, one) for kind, known in kinds.items() if (one := _argument(names, known))), ("", "")
    )
    if not (limit and held):
        raise Unclear(
            f"{own} is judged as the clipping of gradients: a function of parameters (or a model, "
            f"or grads) and of a limit (max_norm, limit or theta). Name its arguments so."
        )

    is_listed = bool(_LISTS.match(str(names[held].annotation)))

    def clip(sizes: Sizes, gradients: Tensor, groups: Tensor, most: Tensor) -> Tensor:
        most = most.detach()
        parts = [one.detach().clone() for one in torch.split(gradients, groups.tolist())]
        parameters = nn.ParameterList(nn.Parameter(torch.zeros_like(one)) for one in parts)
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part
        # A generator, as model.parameters() is: what reads it twice finds nothing there.
        some = [*parameters] if is_listed else (one for one in parameters)
        given = {"parameters": some, "module": parameters}
        answer = thing(**{held: given.get(kind, parts), limit: float(most)})
        if kind == "gradients":
            returned = isinstance(answer, list | tuple) and len(answer) == len(parts)
            return torch.cat([*answer] if returned else parts)
        return torch.cat([one.grad for one in parameters if one.grad is not None])

    sort = "list" if is_listed else "generator"
    usual = {"parameters": f"a {sort} of parameters", "module": "a module"}
    given_as = usual.get(kind, "a list of arrays")
    return _Way(clip, f"{held} as {given_as}, the limit in {limit}", {})
