"""A fault of the catalogue and the decorators that register one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal

from attentest.faults.reference_models import REFERENCE_MODELS, Hooks, hook_names
from attentest.faults.reference_models.hooks import Base
from attentest_spec.choices import Value
from attentest_spec.clauses import clauses
from attentest_spec.components import inside
from attentest_spec.names import require

Kind = Literal["value", "state", "gradient", "mode", "loud", "wording"]
Override = Callable[..., Any]

SIDES = ("encoder", "decoder")

_FAULTS: dict[str, "Fault"] = {}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One catalogued mistake: one override of one hook.

    `clause` is the one that must detect it, `wrong` says in one line what is wrong, `effect` what
    a user sees, `origin` where it was met ("B023" of the list of known bugs, "A" to "D" for a
    published system, "own"). `seam` is the hook that `override` takes the place of. `models` are
    the reference models that it can be injected into, `choices` what must be declared for it to
    exist or to show. `kind` says where it shows; "loud" means it raises, "wording" that it refuses
    with an error that does not help. `components` are the innermost ones that it changes: by
    default that of the clause.
    """

    slug: str
    clause: str
    wrong: str
    effect: str
    origin: str
    seam: str
    override: Override = field(repr=False)
    models: tuple[str, ...] = tuple(REFERENCE_MODELS)
    choices: Mapping[str, Value] = field(default_factory=dict, hash=False)
    kind: Kind = "value"
    components: tuple[str, ...] = ()

    @property
    def chapter(self) -> str:
        """The chapter that the slug begins with."""
        return self.slug.split(".", maxsplit=1)[0]

    @property
    def component(self) -> str:
        """The component that it is injected into."""
        return self.changes[0]

    @property
    def changes(self) -> tuple[str, ...]:
        """The innermost components that it changes."""
        known = clauses()
        return self.components or (known[require("clause", self.clause, known)].component,)

    def reaches(self, component: str) -> bool:
        """Return whether it can change `component`; a hook of all components can change any."""
        return hasattr(Base, self.seam) or bool(inside(component).intersection(self.changes))


def fault(
    slug: str,
    clause: str,
    *,
    seam: str,
    origin: str = "own",
    models: tuple[str, ...] = tuple(REFERENCE_MODELS),
    choices: Mapping[str, Value] | None = None,
    kind: Kind = "value",
    components: tuple[str, ...] = (),
    in_layer: bool = False,
) -> Callable[[Override], Override]:
    """Register the decorated function as the fault `slug`: its override of the hook `seam`.

    The function is a method of the reference model; `self.correct` is the model without the
    fault. The first sentence of its docstring says what is wrong, the rest what a user sees.
    `clause` is written without its chapter, which is the slug's. `in_layer` says that the fault
    changes the layer of the chapter, where the clause is one of the stack. Raises ValueError for
    a second fault of one name and for a docstring that lacks a sentence, UnknownName for a hook
    that does not exist.
    """

    def register(override: Override) -> Override:
        if slug in _FAULTS:
            raise ValueError(f"There are two faults named {slug}.")
        wrong, effect = described(override)
        chapter, _, _ = slug.partition(".")
        _FAULTS[slug] = Fault(
            slug=slug,
            clause=f"{chapter}.{clause}",
            wrong=wrong,
            effect=effect,
            origin=origin,
            seam=require("hook", seam, hook_names()),
            override=override,
            models=models,
            choices=dict(choices or {}),
            kind=kind,
            components=(f"{chapter}_layer",) if in_layer else components,
        )
        return override

    return register


def stack_fault(
    name: str,
    clause: str,
    *,
    seam: str,
    origin: str = "own",
    choices: Mapping[str, Value] | None = None,
    kind: Kind = "value",
    in_layer: bool = False,
) -> Callable[[Override], Override]:
    """Register the decorated function as the fault `name` of the encoder and of the decoder.

    `seam` has "{side}" for the name of the stack; a hook without it is called by both stacks, and
    stays correct in the other one. The function is given the model, the correct hook, and then
    what the hook is given.
    """

    def register(override: Override) -> Override:
        for side in SIDES:
            fault(
                f"{side}.{name}",
                clause,
                seam=seam.format(side=side),
                origin=origin,
                choices=choices,
                kind=kind,
                in_layer=in_layer,
            )(_on_one_side(override, seam, side))
        return override

    return register


def _on_one_side(override: Override, seam: str, side: str) -> Override:
    """Return `override` of the hook of one side, given the correct hook as its first input."""
    hook = seam.format(side=side)
    common = hook == seam

    @wraps(override)
    def on_one_side(self: Hooks, *inputs: Any) -> Any:
        correct = getattr(self.correct, hook)
        if common and inputs[0].step != f"{side}_layer":
            return correct(*inputs)
        return override(self, correct, *inputs)

    return on_one_side


def described(override: Override) -> tuple[str, str]:
    """Return the first sentence of a docstring and the rest, each as one line."""
    first, _, rest = " ".join((override.__doc__ or "").split()).partition(". ")
    if not rest.endswith("."):
        raise ValueError(
            f"{override.__name__}: the docstring must say what is wrong, then the effect."
        )
    return f"{first}.", rest


def registered() -> Mapping[str, Fault]:
    """Return the faults of the chapters that have been imported."""
    return _FAULTS
