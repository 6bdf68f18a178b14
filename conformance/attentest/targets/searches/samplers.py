"""From a function or a class that samples, or filters logits, to a backend of its distribution."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch.overrides import TorchFunctionMode

from attentest.results.text import summary as in_short
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.origin import origin
from attentest.targets.searches.backend import AdaptedSearch, options_of
from attentest.targets.searches.classes import as_function
from attentest.targets.searches.filters import METHODS, ROLES, SHARES, begins_as, is_off_at_zero
from attentest.targets.single import SINGLE
from attentest_spec import Choices, Limits, Setting, Sizes, Unsupported
from attentest_spec.decoding import sampling
from attentest_spec.setting import Floats
from attentest_spec.torch import Recipe, to_tensor

COMPONENT = "sampling"

_SETTINGS = ("temperature", "top_k", "top_p")
_OFF: Mapping[str, tuple[Any, ...]] = {"top_k": (0, None, "every"), "top_p": (1.0, None, 0.0)}
"""Values that turn a filter off; its own default is tried first."""

_SHAPES = ("(B, V)", "(V,)", "(B, 1, V)")


class _Draws(TorchFunctionMode):
    """Records the weights that places are drawn by, and draws the same `place` always, if given.

    A draw leaves the random state as it was: it is the caller's, who asked for no token.
    """

    def __init__(self, place: int | None = None) -> None:
        """Begin without a draw."""
        super().__init__()
        self.place = place
        self.weights: list[Tensor] = []

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call `function`, and keep what `multinomial` is given."""
        if function not in (torch.multinomial, Tensor.multinomial):
            return function(*args, **(kwargs or {}))
        self.weights.append(args[0] if args else kwargs["input"])
        with torch.random.fork_rng(devices=[]):
            found = function(*args, **(kwargs or {}))
        return found if self.place is None else torch.full_like(found, self.place)


@dataclass(frozen=True)
class Sampler:
    """The call of a function: its roles, the shape that it takes, and its values for no filter.

    `left_out` says that a filter gets the share that it leaves out, and `rounds` by how much more
    of one token than the k that are kept, which it rounds.
    """

    function: Callable[..., Any]
    roles: Mapping[str, str]
    shape: str = _SHAPES[0]
    off: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    left_out: bool = False
    rounds: float = 0.0

    def at(self, sizes: Sizes) -> Callable[[Tensor], Tensor]:
        """Return the function from logits (B, V) to probabilities (B, V) at the settings."""
        for name, usual in (("top_k", 0), ("top_p", 1.0)):
            if name not in self.roles and getattr(sizes, name) != usual:
                raise Unsupported(f"it takes no {name}")
        if "temperature" not in self.roles and sizes.temperature == 0:
            raise Unsupported("it takes no temperature")
        return lambda logits: self._probabilities(sizes, logits)

    def _probabilities(self, sizes: Sizes, logits: Tensor) -> Tensor:
        given = logits if "temperature" in self.roles else logits / sizes.temperature
        if self.shape == "(V,)":
            return torch.cat([self._asked(sizes, row, row[None]) for row in given])
        return self._asked(sizes, given[:, None] if "1" in self.shape else given, given)

    def _share(self, name: str, value: Any, rows: Tensor) -> Any:
        """Return the value of a filter, as the share that is left out where that is asked for."""
        if not self.left_out or name == "temperature":
            return value
        count = rows.shape[-1]
        kept = (value + self.rounds) / count if name == "top_k" else value
        return 1.0 - kept if value < count else 0.0

    def _asked(self, sizes: Sizes, given: Tensor, rows: Tensor) -> Tensor:
        """Return the probabilities of `rows` (B, V), which the function is `given`."""
        values: dict[str, Any] = {"logits": given.clone(), "generator": None, "sampler": _drawn}
        for name in _SETTINGS:
            value = getattr(sizes, name)
            off = self.off.get(name)
            off = rows.shape[-1] if off == _EVERY else off
            values[name] = off if value == _NEUTRAL.get(name) else self._share(name, value, rows)
        named = {own: values[role] for role, own in self.roles.items()}

        def called(place: int | None = None) -> tuple[Any, _Draws]:
            with _Draws(place) as draws:
                return self.function(**self.fixed, **named), draws

        result, draws = called()
        if not draws.weights:
            return _of_result(result, rows)
        weights = draws.weights[-1].reshape(len(rows), -1)
        shares = weights / weights.sum(dim=-1, keepdim=True)
        return _placed(shares, rows, lambda place: called(place)[0])


def _drawn(logits: Tensor) -> Tensor:
    """Return a token for each row of logits (.., V): what a sampler gets that filters for one."""
    return torch.multinomial(logits.softmax(dim=-1), 1).squeeze(-1)


def _placed(shares: Tensor, rows: Tensor, drawn: Callable[[int], Any]) -> Tensor:
    """Return the shares (B, P) of places at the tokens (B, V) that they are, as `drawn` shows.

    Code may draw from sorted tokens, or from a few, and look up which token that is.
    """
    count, ids = shares.shape[-1], rows.shape[-1]
    few = count <= _FEW
    shown = range(count) if few else (0, 1, count // 2, count - 1)
    tokens = {place: _tokens(drawn(place), len(rows)) for place in shown}
    known = {place: one for place, one in tokens.items() if one is not None}
    if count == ids and all(bool((one == place).all()) for place, one in known.items()):
        return shares
    if not few or len(known) < count:
        raise Unsupported("it draws from sorted tokens, and not all of them can be looked at")
    where = torch.stack([one_hot(known[place], ids) for place in shown], dim=1)  # (B, P, V)
    return (shares[:, None] @ where.to(shares.dtype))[:, 0]


_FEW = 64
"""The largest number of places that are drawn one by one."""


def _tokens(result: Any, count: int) -> Tensor | None:
    """Return the tokens (B,) that a result is, or None."""
    found = result[0] if isinstance(result, tuple) and result else result
    found = torch.tensor([found]) if isinstance(found, int) else found
    if not isinstance(found, Tensor) or found.is_floating_point() or found.numel() != count:
        return None
    return found.reshape(-1).long()


_EVERY = "every"
"""The number of all tokens, as what turns a filter off."""

_NEUTRAL: Mapping[str, Any] = {"top_k": 0, "top_p": 1.0}


def _of_result(result: Any, rows: Tensor) -> Tensor:
    """Return the probabilities (B, V) that a result is: filtered logits, a distribution, or ids."""
    found = result[0] if isinstance(result, tuple) and result else result
    if isinstance(found, int):
        found = torch.tensor([found])
    if not isinstance(found, Tensor):
        raise ValueError(f"it returned a {type(found).__name__}")
    if found.is_floating_point() and found.numel() == rows.numel():
        own = found.reshape(rows.shape)
        sums = own.sum(dim=-1)
        is_whole = bool((own >= 0).all()) and bool(((sums - 1).abs() < 1e-2).all())
        return own if is_whole else own.softmax(dim=-1)
    if (tokens := _tokens(found, len(rows))) is not None:
        # Nothing was drawn: without noise this is the only token that can come.
        return one_hot(tokens, rows.shape[-1]).to(rows.dtype)
    raise ValueError(f"it returned a tensor of the shape {tuple(found.shape)}")


_LEFT_OUT = (
    "assumed that {} is the share that is left out, as its numbers show: if it is to be the share "
    "that is kept, this is a mistake"
)
_KEPT = ", and --argument top_p={} judges it by that"


def adapt_sampler(
    thing: Any, name: str, home: ModuleType | None, reading: Reading
) -> AdaptedSearch:
    """Return `thing` as a backend of sampling; Unclear where it cannot be called.

    A class is built and called by a method of it that takes logits.
    """
    function = as_function(thing, name, METHODS) if inspect.isclass(thing) else thing
    roles, fixed = _roles(function, name, reading)
    with undisturbed():
        shared = next((own for own in roles.values() if squashed(own) in SHARES), "")
        left_out = bool(shared) and shared not in reading.arguments.values()
        sampler, doubts = _tried(Sampler(function, roles, fixed=fixed, left_out=left_out), name)
        if sampler.left_out:
            left = _LEFT_OUT + _KEPT * ("top_p" in roles)
            doubts = [*doubts, left.format(shared, shared)]
        if doubts and (more := _unread(function, {*roles.values(), *fixed})):
            raise Unclear(
                f"Without filters {name} gives no softmax, and nothing says what {more} does. Fix "
                f"it so that it filters nothing, with --give {more}=VALUE."
            )
        rounds = not reading.strict and _is_right_in_single_alone(sampler)
        doubts = [*doubts, *[SINGLE] * rounds]
        choices = _measured(sampler, single=rounds)
    said = [f"called ({', '.join(f'{role}={own}' for role, own in roles.items())})"]
    said.append(f"logits are given as {sampler.shape} (as probing calls show)")
    if "temperature" not in roles:
        said.append("it takes no temperature: logits are divided by it before the call")
    said += [f"it takes no {one}" for one in ("top_k", "top_p") if one not in roles]
    said += [f"{axis}: {value} (as probing calls show)" for axis, value in choices.items()]
    return AdaptedSearch(
        name=name,
        title=f"{name}, read as {COMPONENT}",
        recipes={COMPONENT: Recipe(build=sampler.at)},
        choices={**choices, **reading.choices},
        limits=Limits(precisions=("float32",)) if rounds else Limits(),
        understood=(f"{name} is judged as {COMPONENT}", *said, *doubts),
        assumed=tuple(doubts),
        summary=f"{name} {said[0]}",
        place=origin(thing, home, name),
        options=options_of(COMPONENT, roles, reading),
    )


def _roles(
    function: Callable[..., Any], name: str, reading: Reading
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return what the arguments carry, and those that are fixed."""
    signature = inspect.signature(function)
    fixed = {one: value for one, value in reading.given.items() if one in signature.parameters}
    named = {own: role for role, own in reading.arguments.items()}
    found: dict[str, str] = {}
    for argument in signature.parameters:
        own = squashed(argument)
        role = named.get(argument) or next((one for one in ROLES if own in ROLES[one]), "")
        if role and role not in found and argument not in fixed:
            found[role] = argument
    for argument in signature.parameters:
        if squashed(argument) in SHARES and not {"top_k", "top_p"} & {*found}:
            found |= {role: argument for role in ("top_k", "top_p") if begins_as(name, role)}
    unknown = [
        one.name
        for one in signature.parameters.values()
        if one.default is one.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        and one.name not in {*found.values(), *fixed}
    ]
    if "logits" not in found or unknown:
        asked = "which argument carries the logits" if "logits" not in found else ""
        asked = asked or f"what to give for {unknown[0]}"
        add = f"--argument ROLE={unknown[0]} or --give {unknown[0]}=VALUE" if unknown else ""
        add = add if "logits" in found else "--argument logits=NAME"
        raise Unclear(
            f"{name}({', '.join(signature.parameters)}) was taken for sampling, and nothing in it "
            f"says {asked}. Add {add}; the roles are {', '.join(ROLES)}."
        )
    return found, fixed


def _unread(function: Callable[..., Any], known: Collection[str]) -> str:
    """Return an argument with a default that carries nothing known, "" for none."""
    signature = inspect.signature(function)
    return next(
        (
            one.name
            for one in signature.parameters.values()
            if one.name not in known and one.default not in (one.empty, None, False)
        ),
        "",
    )


def _ways(sampler: Sampler) -> Iterator[Sampler]:
    """Yield the ways of calling: shapes, and the values that mean no filter."""
    signature = inspect.signature(sampler.function).parameters
    options = []
    for name, usual in _OFF.items():
        default = signature[sampler.roles[name]].default if name in sampler.roles else usual[0]
        known = [default] if default in (*usual, -1) else []
        own = sampler.roles.get(name, "") if name == "top_p" else ""
        known += [0.0] * is_off_at_zero(sampler.function, own)
        options.append([*known, *(one for one in usual if one not in known)])
    for shape, *off in product(_SHAPES, *options):
        way = replace(sampler, shape=shape, off=dict(zip(_OFF, off, strict=True)))
        if not sampler.left_out:
            yield way
            continue
        way = replace(way, off=dict.fromkeys(_OFF, 0.0))
        kept = dict.fromkeys(_OFF, 1.0)
        by_rounding = (replace(way, rounds=one) for one in (0.5, -0.5))
        yield from (
            by_rounding
            if "top_k" in sampler.roles
            else (replace(way, left_out=False, off=kept), way)
        )


def _keeps(way: Sampler) -> bool:
    """Say whether a way of calling keeps as many tokens as it should, or what it should."""
    if "top_k" in way.roles:
        return bool(((_answer(way, top_k=4) > 0).sum(axis=-1) == 4).all())
    return bool(_measured(way))


_LOGITS = np.round(np.random.default_rng(4).normal(scale=1.5, size=(2, 9)), 2)
_WORDS = Sizes(target_vocabulary=9, source_vocabulary=9)


def _answer(sampler: Sampler, *, single: bool = False, **settings: float) -> Floats:
    logits = to_tensor(_LOGITS)
    found = sampler.at(_WORDS.but(**settings))(logits.float() if single else logits)
    return found.double().numpy()


def _tried(sampler: Sampler, name: str) -> tuple[Sampler, list[str]]:
    """Return the way of calling that gives a softmax without filters, or the first that runs."""
    plain = sampling(Setting(_WORDS), _LOGITS)
    ran, others, refusals = [], [], []
    for way in _ways(sampler):
        try:
            answer = _answer(way)
        except Exception as failure:  # code that a user wrote may raise anything
            refusals.append(in_short(failure))
            continue
        if answer.shape == plain.shape and np.allclose(answer, plain, atol=1e-5):
            if not sampler.left_out or _keeps(way):
                return way, []
            others.append(way)
            continue
        if answer.shape == plain.shape and ((answer > 0).sum(axis=-1) > 1).all():
            ran.append(way)
    if others:
        return others[0], []
    if ran:
        return ran[0], ["assumed that it is called so: without filters it gives no softmax"]
    what = "; ".join(dict.fromkeys(refusals)) or "it draws by noise of its own"
    raise Unclear(
        f"{name} could not be called as sampling with logits (B, V) or (V,). What was tried: "
        f"{what}. What it returns should be filtered logits, probabilities, or a token that "
        f"torch.multinomial draws. Say which argument is which with --argument ROLE=NAME."
    )


def _is_right_in_single_alone(sampler: Sampler) -> bool:
    """Say whether filters are right for logits in float32 alone: a bound is rounded to that."""
    return not _filters(sampler, single=False) and _filters(sampler, single=True)


def _filters(sampler: Sampler, *, single: bool) -> bool:
    """Say whether the numbers of the filters are those of the reference, or there are none."""
    if "top_p" in sampler.roles:
        return bool(_measured(sampler, single=single))
    if "top_k" not in sampler.roles:
        return True
    try:
        answer = _answer(sampler, single=single, top_k=4)
    except Exception:  # code that a user wrote may raise anything
        return False
    return _close(answer, sampling(Setting(_WORDS.but(top_k=4)), _LOGITS))


def _measured(sampler: Sampler, *, single: bool = False) -> dict[str, str]:
    """Return the order of the filters and the nucleus, where the numbers show them."""
    if "top_p" not in sampler.roles:
        return {}
    few = {"top_k": 4} if "top_k" in sampler.roles else {}
    cases = [{"temperature": heat, "top_p": share, **few} for heat, share in _CASES]
    try:
        answers = [_answer(sampler, single=single, **case) for case in cases]
    except Exception:  # code that a user wrote may raise anything
        return {}
    for order, nucleus in product(("temperature-first", "filters-first"), _NUCLEI):
        given = Choices(filter_order=order, nucleus=nucleus)
        wanted = [sampling(Setting(_WORDS.but(**case), given), _LOGITS) for case in cases]
        if all(map(_close, answers, wanted)):
            return {"filter_order": order, "nucleus": nucleus}
    return {}


_CASES = ((1.7, 0.8), (0.6, 0.55), (2.5, 0.3))
"""Temperatures and shares at which the orders keep different tokens."""

_NUCLEI = ("of-what-is-left", "of-all")


def _close(found: Floats, wanted: Floats) -> bool:
    return bool(np.allclose(found, wanted, atol=1e-5))
