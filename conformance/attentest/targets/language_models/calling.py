"""The call of a decoder-only model as the source of a Python function, found by probing calls."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from attentest.results.text import summary
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.objects.mask_holders import mask_holders
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.kernels import demand_runnable
from attentest.targets.language_models.argument_names import (
    AT_START,
    LABELS,
    MASKS,
    POSITIONS,
    SURE_MASKS,
    SURE_POSITIONS,
    first_named,
    is_none,
    tokens_named,
)
from attentest.targets.language_models.construction.building import PROBE
from attentest.targets.language_models.questions.bodies import words_on_body
from attentest.targets.language_models.questions.lengths import lengths_tried
from attentest.targets.language_models.questions.seen_tokens import (
    ALONE,
    INVERTED,
    RANDOM,
    first_random,
    is_random,
    wrongly_seen,
)
from attentest.targets.language_models.surrounded.modules import called_of, signature_of
from attentest.targets.models.results import parts_of
from attentest_spec import Unsupported

MASK_FORMS = {
    "True is a token": "mask",
    "1 is a token": "mask.long()",
    "1.0 is a token": "mask.to(next(model.parameters()).dtype)",
    "True is padding": "~mask",
}
POSITION_FORMS = {"(B, T)": "positions", "(T), the same for all": "positions[0]"}


@dataclass(frozen=True)
class Call:
    """One way to call a model.

    `tokens` is the argument with the ids, `labels` the one that gets them a second time so that
    all steps are returned, `mask` and `positions` are those with the masks of padding and with
    positions ("" for none), `mask_form` and `position_form` expressions for them, and `fixed` are
    constants. `order` is the argument that has to be given a mask of later tokens, `order_form` an
    expression of `seen`, which is True where a token is seen. `required` is a mask of padding that
    no call may leave out, and `required_form` the one that hides none. `sequence_first` says that
    tokens are (T, B), `part` is the place of the logits in the result and `attribute` that it is an
    attribute. `holders` are the classes of masks that are objects, by the names of arguments.
    `placed` is an argument that no call may leave out, which gets positions (B, T) in the form
    `placed_form`, and `bare` says that the result holds the logits alone in training mode.
    """

    tokens: str
    labels: str = ""
    mask: str = ""
    positions: str = ""
    mask_form: str = "mask"
    position_form: str = "positions"
    order: str = ""
    order_form: str = ""
    required: str = ""
    required_form: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    sequence_first: bool = False
    part: int | str | None = None
    attribute: bool = False
    holders: Mapping[str, type] = field(default_factory=dict)
    placed: str = ""
    placed_form: str = ""
    bare: bool = False

    def source(self) -> str:
        """Return the source of the function `call`."""
        rows = [
            "def call(model, tokens, mask=None, positions=None):",
            '    """Return the logits (B, T, V) for tokens (B, T)."""',
            *self._refusals(),
            f"    given = {{{', '.join(self._given())}}}",
            *self._ordered(),
            *self._required(),
            *self._placed(),
        ]
        for own, name, form in (
            (self.mask, "mask", self.mask_form),
            (self.positions, "positions", self.position_form),
        ):
            if own:
                held = self.held(own, form)
                rows += [f"    if {name} is not None:", f'        given["{own}"] = {held}']
        rows += ["    output = model(**given)", *self._output()]
        return "\n".join(rows) + "\n"

    def compiled(self) -> Callable[..., Any]:
        """Return the function."""
        space: dict[str, Any] = {"torch": torch, "Unsupported": Unsupported, **self.space}
        exec(self.source(), space)
        made: Callable[..., Any] = space["call"]
        return made

    @property
    def space(self) -> Mapping[str, type]:
        """The classes of masks that are objects, by their names."""
        return {one.__name__: one for one in self.holders.values()}

    def held(self, own: str, form: str) -> str:
        """Return the expression `form` of a mask as the argument `own` takes it."""
        return f"{self.holders[own].__name__}({form})" if own in self.holders else form

    @property
    def words(self) -> str:
        """The arguments in one phrase."""
        phrases = [f"tokens={self.tokens}"] if self.tokens != "tokens" else ["tokens"]
        phrases += [f"tokens again as {self.labels}, to have all steps"] * bool(self.labels)
        phrases += [f"mask of padding={self.mask}"] * bool(self.mask)
        phrases += [f"mask of later tokens={self.order}"] * bool(self.order)
        phrases += [f"positions={self.positions or self.placed}"] * bool(
            self.positions or self.placed
        )
        phrases += [f"{own}={value!r}" for own, value in self.fixed.items()]
        phrases += ["tokens are (T, B), sequence first"] * self.sequence_first
        return ", ".join(phrases)

    def _refusals(self) -> Iterator[str]:
        for own, name in ((self.mask, "mask"), (self.positions, "positions")):
            if not own:
                yield f"    if {name} is not None:"
                yield f'        raise Unsupported("it takes no {name}")'

    def _given(self) -> Iterator[str]:
        tokens = "tokens.T" if self.sequence_first else "tokens"
        yield f'"{self.tokens}": {tokens}'
        if self.labels:
            yield f'"{self.labels}": {tokens}'
        for own, value in self.fixed.items():
            yield f'"{own}": {value!r}'

    def _ordered(self) -> Iterator[str]:
        if self.order:
            yield "    later = torch.ones(2 * tokens.shape[1:], device=tokens.device).triu(1)"
            yield "    seen = later == 0"
            yield f'    given["{self.order}"] = {self.held(self.order, self.order_form)}'

    def _required(self) -> Iterator[str]:
        if self.required:
            yield "    mask_of_all = torch.ones_like(tokens, dtype=torch.bool)"
            yield f'    given["{self.required}"] = {self.held(self.required, self.required_form)}'

    def _placed(self) -> Iterator[str]:
        if self.placed:
            yield "    steps = torch.arange(tokens.shape[1], device=tokens.device)"
            yield f'    given["{self.placed}"] = {self.placed_form.format("steps")}'

    def _output(self) -> Iterator[str]:
        if self.part is not None:
            place = f".{self.part}" if self.attribute else f"[{self.part!r}]"
            if self.bare:
                yield "    if not isinstance(output, torch.Tensor):  # it is the logits in training"
            yield f"{'    ' * self.bare}    output = output{place}"
        if self.labels:
            yield "    output = output.reshape(*tokens.shape, -1)"
        yield "    return output.transpose(0, 1)" if self.sequence_first else "    return output"


def requiring(call: Call, own: str, form: str) -> Call:
    """Return `call` with a mask of padding as `own` in every call, in one of the forms."""
    fixed = {name: value for name, value in call.fixed.items() if name != own}
    return replace(
        call, required=own, required_form=form.replace("mask", "mask_of_all"), fixed=fixed
    )


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call by their roles; `candidates` are masks and positions to try."""

    plain: Call
    labels: str = ""
    masks: tuple[str, ...] = ()
    positions: tuple[str, ...] = ()

    def is_sure(self, own: str) -> bool:
        """Say whether the name `own` leaves no doubt on what it carries."""
        return squashed(own) in (*SURE_MASKS, *SURE_POSITIONS)


def arguments_of(model: nn.Module, name: str, reading: Reading) -> Arguments:
    """Return the roles of the arguments of a call; Unclear where one has none."""
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    signature = signature_of(model)
    own = {one.name: one for one in signature.parameters.values() if one.kind not in loose}
    tokens = reading.arguments.get("tokens") or tokens_named(own)
    fixed = {one: value for one, value in reading.given.items() if one in own}
    free = [one for one in own if one != tokens and one not in fixed]
    unknown = []
    for one in free:
        if own[one].default is not inspect.Parameter.empty:
            continue
        if is_none(own[one]):
            fixed[one] = None
        elif squashed(one) in AT_START:
            fixed[one] = AT_START[squashed(one)]
        elif squashed(one) not in (*MASKS, *POSITIONS, *LABELS):
            unknown.append(one)
        elif squashed(one) in MASKS:
            fixed[one] = None
    if unknown or not tokens:
        raise Unclear(
            f"{name}({', '.join(signature.parameters)}) was taken for a decoder-only model (tokens "
            f"in, logits out), and nothing says what to give for {' and '.join(unknown)}. Add "
            f"{' '.join(f'--give {one}=VALUE' for one in unknown)} (in Python: given={{NAME: "
            f"VALUE}})."
        )
    return Arguments(
        Call(tokens, fixed=fixed, holders=mask_holders(called_of(model))),
        first_named(own, LABELS),
        tuple(one for one in free if squashed(one) in MASKS and one not in reading.given),
        tuple(one for one in free if squashed(one) in POSITIONS and one not in reading.given),
    )


NO_LOGITS = "its result holds no tensor of the shape (B, T, vocabulary)"
_MIXED = "sequences are mixed"


def fitted(model: nn.Module, found: Arguments, name: str) -> Call:
    """Return the call that gives logits for every token; Unclear where none does."""
    failure = ""
    for labels in ("", found.labels) if found.labels else ("",):
        for sequence_first in (False, True):
            tried = replace(found.plain, labels=labels, sequence_first=sequence_first)
            made = with_part(model, tried)
            if isinstance(made, Call) and _separates(model, made):
                return made
            words = made if isinstance(made, str) else _words_on(model, made)
            failure = words if words == RANDOM or not failure else failure
    for tried in with_required_mask(found.plain):
        made = with_part(model, tried)
        if isinstance(made, Call) and _separates(model, made) and _hides(model, made):
            return made
    demand_runnable(name, failure, type(model))
    if failure not in (NO_LOGITS, _MIXED, INVERTED, ALONE, RANDOM):
        for steps, words in lengths_tried(failure, PROBE.max_length):
            if isinstance(with_part(model, found.plain, probe_tokens(steps=steps)), Call):
                raise Unclear(words.format(name, failure))
    if failure == RANDOM:
        where = first_random(model, found.plain.compiled(), probe_tokens())
        raise Unclear(f"{name} is not judged as a decoder-only model: {RANDOM}{where}.")
    if failure == NO_LOGITS:
        failure = words_on_body(model, inputs_of(found.plain, probe_tokens()), name) or failure
    raise Unclear(
        f"{name} could not be called as a decoder-only model ({found.plain.words}): {failure}. Say "
        f"which argument holds the tokens with --argument tokens=NAME, and fix others with "
        f"--give NAME=VALUE."
    )


def _words_on(model: nn.Module, call: Call) -> str:
    """Return the words on a call that gives logits which depend on the wrong tokens."""
    function, tokens = call.compiled(), probe_tokens()
    if is_random(model, function, tokens):
        return RANDOM
    return wrongly_seen(model, function, tokens) or _MIXED


def with_required_mask(plain: Call) -> Iterator[Call]:
    """Yield the call with a mask that hides nothing in the place of one that got no value."""
    for own in [one for one in plain.fixed if squashed(one) in MASKS]:
        yield from (requiring(plain, own, form) for form in MASK_FORMS.values())


def _hides(model: nn.Module, call: Call) -> bool:
    """Say whether a mask in the form of that which is required hides a token, and no others.

    It is the second one: the first is the only one that its own query sees.
    """
    form = call.required_form.replace("mask_of_all", "mask")
    function = replace(call, mask=call.required, mask_form=form).compiled()
    tokens = probe_tokens()
    moved, mask = tokens.clone(), torch.ones_like(tokens, dtype=torch.bool)
    moved[:, 1], mask[:, 1] = tokens[:, 1].flip(0), False
    try:
        with undisturbed():
            hidden, other = function(model, tokens, mask), function(model, moved, mask)
            shown = function(model, tokens)
    except Exception:  # code that a user wrote may raise anything
        return False
    same = torch.isclose(hidden[:, 2:], other[:, 2:], rtol=1e-5, atol=1e-6).all()
    return bool(same) and not bool(torch.isclose(hidden[:, 2:], shown[:, 2:]).all())


def gives_logits(model: nn.Module, call: Call) -> bool:
    """Say whether `call` gives logits alone, for every token."""
    tokens = probe_tokens()
    try:
        with undisturbed():
            found = call.compiled()(model, tokens)
    except Exception:  # code that a user wrote may raise anything
        return False
    shape = (*tokens.shape, PROBE.target_vocabulary)
    return isinstance(found, Tensor) and found.shape == shape and _separates(model, call)


def probe_tokens(rows: int = 3, steps: int = 7) -> Tensor:
    """Return tokens (rows, steps) of the probe, no two of a row alike where it has as many."""
    generator = torch.Generator().manual_seed(5)
    found = [torch.randperm(PROBE.target_vocabulary, generator=generator) for _ in range(rows)]
    return torch.stack(found).repeat(1, 2)[:, :steps].contiguous()


def with_part(model: nn.Module, call: Call, given: Tensor | None = None) -> Call | str:
    """Return `call` with the place of the logits in its result, or why there are none.

    It is called with the tokens that are `given`, or else with those of the probe.
    """
    tokens = probe_tokens() if given is None else given
    raw = replace(call, part=None, labels="")
    try:
        with undisturbed():
            result = model(**inputs_of(call, tokens, model))
    except Exception as failure:  # code that a user wrote may raise anything
        return summary(failure, 160)
    lead = tuple(tokens.T.shape) if raw.sequence_first else tuple(tokens.shape)
    vocabulary = PROBE.target_vocabulary
    shapes = [(*lead, vocabulary)] + [(tokens.numel(), vocabulary)] * bool(call.labels)
    for key, part, attribute in parts_of(result):
        if tuple(part.shape) in shapes:
            return replace(call, part=key, attribute=attribute)
    return NO_LOGITS


def inputs_of(call: Call, tokens: Tensor, model: nn.Module | None = None) -> dict[str, Any]:
    """Return the arguments of `call` with `tokens` (B, T).

    A mask that is required may have the type of the parameters of the `model`.
    """
    fixed = {own: copy(value) for own, value in call.fixed.items()}  # a call may fill a list
    inputs = {call.tokens: tokens.T if call.sequence_first else tokens, **fixed}
    if call.labels:
        inputs[call.labels] = inputs[call.tokens]
    if call.required:
        mask = torch.ones_like(tokens, dtype=torch.bool)
        held = {"mask_of_all": mask, "model": model, **call.space}
        inputs[call.required] = eval(call.held(call.required, call.required_form), held)
    if call.placed:
        steps = {"steps": torch.arange(tokens.shape[1]), "tokens": tokens}
        inputs[call.placed] = eval(call.placed_form.format("steps"), steps)
    return inputs


def _separates(model: nn.Module, call: Call) -> bool:
    """Say whether sequences leave one another as they are, and their tokens do not.

    Outputs that are no numbers, as where a token sees no key, show neither.
    """
    tokens, function = probe_tokens(), call.compiled()
    try:
        with undisturbed():
            before = function(model, tokens)
            moved = tokens.clone()
            moved[:2, 0] = moved[:2, 0].flip(0)
            after = function(model, moved)
    except Exception:  # code that a user wrote may raise anything
        return False
    if before.isnan().any():
        return True
    same = torch.isclose(before, after, rtol=1e-5, atol=1e-6).all(-1)
    return bool(same[2].all()) and not bool(same[:2, -1].any())


def is_causal(model: nn.Module, call: Call) -> bool:
    """Say whether no output depends on a later token, as far as there are outputs."""
    tokens, function = probe_tokens(), call.compiled()
    moved = tokens.clone()
    moved[:, 4:] = tokens[:, 4:].flip(0)
    try:
        with undisturbed():
            before, after = function(model, tokens), function(model, moved)
    except Exception:  # code that a user wrote may raise anything, and in one precision alone
        return False
    if not isinstance(before, Tensor) or before.ndim < 2:  # a loss is one number
        return False
    return bool(torch.isclose(before[:, :4], after[:, :4], rtol=1e-5, atol=1e-6).all())
