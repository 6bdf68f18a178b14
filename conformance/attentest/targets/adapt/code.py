"""The code that a user names: a function, a class or an instance, how it is built and called."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from torch import nn

from attentest.targets.adapt.components import component_guessed, component_named
from attentest.targets.adapt.construction import Construction, construction, copied_at
from attentest.targets.adapt.encoders.sequences import as_layer, is_of_one_text
from attentest.targets.adapt.encoders.shared_layers import with_own_layers
from attentest.targets.adapt.encoders.stack import stack_in
from attentest.targets.adapt.fillings import Filling
from attentest.targets.adapt.objects.heads import has_heads, sizes_said
from attentest.targets.adapt.objects.layer_numbers import as_a_later_layer
from attentest.targets.adapt.objects.query_widths import with_model_widths
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.wrappers.caller import held_by_caller
from attentest.targets.adapt.wrappers.head_matrices import with_own_heads
from attentest.targets.adapt.wrappers.weights import weights_of_caller
from attentest.targets.adapt.wrappers.wrapper import Wrapper
from attentest.targets.comments import words_on
from attentest.targets.constants.components import constants_of, varied
from attentest.targets.deep_copies import copy_of
from attentest.targets.origin import Origin, origin
from attentest.targets.signatures import constructor_arguments
from attentest_spec import COMPONENTS, Sizes
from attentest_spec.choices import Value

POSITIONS = 1024
"""Positions of a class whose stack is judged: a stack by itself has no limit."""


@dataclass(frozen=True)
class Inner:
    """The place of the code in what its class builds: the sub-module at `path`.

    `stack` holds the options of an :class:`EmbeddedStack`, {} where the sub-module is called as it
    is; `pads` says that the constructor takes the pad id, which is 0 otherwise, and `masked` that
    the class makes a mask for the sub-module of its tokens.
    """

    path: str = ""
    stack: Mapping[str, Any] = field(default_factory=dict)
    pads: bool = False
    masked: bool = False

    @staticmethod
    def around(sizes: Sizes) -> Sizes:
        """Return the sizes of the whole class for a stack of `sizes`: with positions enough."""
        return sizes.but(max_length=max(sizes.max_length, POSITIONS))

    def __call__(self, whole: nn.Module, sizes: Sizes) -> nn.Module:
        """Return the stack in `whole`, which was built at `sizes`."""
        found = whole.get_submodule(self.path)
        return stack_in(whole, found, self.options(sizes)) if self.stack else found

    def options(self, sizes: Any) -> dict[str, Any]:
        """Return the options of the stack."""
        pad = {"pad": sizes.source_pad} if self.pads else {}
        return {name: one for name, one in self.stack.items() if one} | pad


@dataclass(frozen=True)
class Code:
    """One piece of code: what it is called and taken for, how it is built, what it says.

    `thing` is the class, function or instance itself, `signature` that of the call, `words` its
    documentation, `construction` is None for what is not built at sizes, `said` are sentences for
    the user. `home` is the module that holds it as `name`, None for a live object. `inner` is the
    part of `thing` that is judged, None for all of it; `entering` returns the options of what comes
    before it, and `leaving` what is said of what comes behind it, None for nothing. `of_function`
    are the constants that are sizes of what is not built. `otherwise` is what is read where this
    cannot be, None for nothing.
    """

    name: str
    component: str
    thing: Any
    build: Callable[[Sizes], Any]
    signature: inspect.Signature
    words: str = ""
    construction: Construction | None = None
    said: tuple[str, ...] = field(default=())
    home: ModuleType | None = None
    inner: Inner | None = None
    entering: Callable[[], Mapping[str, Value]] | None = None
    leaving: Callable[[], str] | None = None
    wrapper: Wrapper | None = None
    of_function: Mapping[str, Filling] = field(default_factory=dict)
    otherwise: "Code | None" = None

    def wrapped(self, wrapper: Wrapper) -> "Code":
        """Return it with `wrapper` around what is built."""
        build = self.build
        return replace(self, wrapper=wrapper, build=lambda sizes: wrapper(build(sizes), sizes))

    @property
    def origin(self) -> Origin:
        """The name of the code in a reproduction."""
        return origin(self.thing, self.home, self.name)

    @property
    def constants(self) -> Mapping[str, Filling]:
        """The constants of its code that are sizes: it is judged in copies that have others."""
        return self.construction.constants if self.construction else self.of_function

    def as_written(self) -> "Code | None":
        """Return it with its constants as they are, None for what has none and for a part.

        What can be read otherwise is that instead.
        """
        if self.otherwise is not None:
            return self.otherwise
        if not self.constants or self.inner is not None or self.wrapper is not None:
            return None
        if self.construction is None:
            return replace(self, of_function={}, build=lambda sizes: _Called(self.thing))
        built = self.construction.with_constants({})
        return replace(self, construction=built, build=built)

    def with_constants_of_parts(self, reading: Reading) -> "Code | None":
        """Return it with constants that its arguments say as well, None where there are none.

        Parts of it read them, as `Head(head_size)` does that has the width from its file.
        """
        built = self.construction
        if built is None or self.constants or self.inner is not None or self.wrapper is not None:
            return None
        found = constants_of(self.thing, self.component, reading, built, said=True)
        made = built.with_constants(found)
        return replace(self, construction=made, build=made) if found else None

    @property
    def is_module(self) -> bool:
        """Whether it is a class that is built at sizes, or a function with one around it."""
        return self.construction is not None or self.wrapper is not None

    @property
    def known(self) -> frozenset[str]:
        """The sizes that it is built with."""
        built = self.construction.known if self.construction else frozenset()
        return built | self.wrapper.known if self.wrapper else built


def code_of(thing: Any, reading: Reading, name: str = "") -> Code:
    """Return how `thing` is built and called; Unclear where that cannot be inferred."""
    if inspect.isclass(thing) and not _is_batch(thing, reading, name):
        return _of_class(thing, reading, name or thing.__name__)
    if isinstance(thing, nn.Module):
        return _of_instance(thing, reading, name)
    if not callable(thing):
        raise Unclear(
            f"A {type(thing).__name__} is neither a backend nor a function, a class or a module "
            f"that could be judged. Name one."
        )
    own = name or getattr(thing, "__name__", type(thing).__name__)
    component = _component(_telling(own, thing), reading)
    if inspect.isroutine(thing) and (module := _module_made(thing, component, reading)):
        return _of_class(thing, reading, own, module.forward)
    held = held_by_caller(thing, component, reading) or weights_of_caller(thing, component, reading)
    if held is not None:
        around, signature = held
        plain = Code(
            own, component, thing, lambda sizes: thing, signature, inspect.getdoc(thing) or ""
        )
        return plain.wrapped(around)
    copied = inspect.isfunction(thing) and not hasattr(thing, "written_as")
    constants = constants_of(thing, component, reading) if copied else {}
    return Code(
        own,
        component,
        thing,
        lambda sizes: _Called(copied_at(thing, constants, sizes)),
        _signature(thing, own),
        words_on(thing),
        of_function=constants,
    )


def _module_made(thing: Callable[..., Any], component: str, reading: Reading) -> nn.Module | None:
    """Return the module that the function `thing` makes of sizes, None where it makes none."""
    try:
        with undisturbed():
            made = _buildable(construction(thing, component, reading))(SIZES)
    except Exception:  # what is called with tensors refuses numbers, or is not understood
        return None
    return made if isinstance(made, nn.Module) else None


def _is_batch(thing: type, reading: Reading, name: str) -> bool:
    """Say whether a class is a batch: its constructor is the call."""
    own = component_named(name or thing.__name__)
    return (reading.component or own) == "batch"


def _of_class(
    thing: Callable[..., Any], reading: Reading, name: str, call: Callable[..., Any] | None = None
) -> Code:
    """Judge a class, or a function that makes a module whose method `call` is called."""
    named = component_named(name) or component_guessed(name)
    heads = named == "attention" and has_heads(thing, reading, call)
    component = _component(name, reading, heads=heads)
    signature = _signature(call, name) if call else _without_self(thing, name)
    if not reading.component:
        component = as_layer(component, thing, name)
        if component == "decoder_layer" and is_of_one_text(signature, thing):
            component = "encoder_layer"
    built = as_a_later_layer(_buildable(varied(thing, component, reading)))
    if component in ("encoder", "decoder") and not reading.strict:
        built = next(with_own_layers(built), built)
    if not reading.strict and "heads" in built.known:
        built = with_own_heads(built)
    return Code(
        name,
        component,
        thing,
        built,
        signature,
        words_on(call or _call(thing), thing),
        built,
        (f"built as {name}({built.words})",) if built.words else (),
    )


def _call(thing: Any) -> Callable[..., Any]:
    """Return the method of the class `thing` that is called."""
    called: Callable[..., Any] = thing.forward if issubclass(thing, nn.Module) else thing.__call__
    return called


def _buildable(found: Construction) -> Construction:
    """Return `found`, with a whole ratio of widths where another one is no size of a layer."""
    try:
        with undisturbed():
            made = found(SIZES)
            if "d_ff" not in found.known or not isinstance(made, nn.Module) or _has_inner(made):
                return found
            wider = found.with_wider_inner()
            return wider if _has_inner(wider(SIZES)) else found
    except TypeError:
        return found.with_whole_ratio()
    except Exception:  # code that a user wrote may raise anything; it is reported later
        others = [found.with_whole_ratio(), *_with_fewer(found), *with_model_widths(found)]
        return next(filter(_builds, others), found)


_OF_TOKENS = frozenset(["source_vocabulary", "target_vocabulary", "max_length"])


def _with_fewer(found: Construction) -> Iterator[Construction]:
    """Yield `found` without one of the sizes of tokens and positions that is None by default."""
    defaults = {own: one.default for own, one in constructor_arguments(found.make).items()}
    for own, one in found.fillings.items():
        if defaults.get(own, "") is None and one.settles and one.settles <= _OF_TOKENS:
            rest = {name: kept for name, kept in found.fillings.items() if name != own}
            yield replace(found, fillings=rest)


def _builds(found: Construction) -> bool:
    """Say whether it is built: settings may refuse a ratio that is no whole number in any way."""
    try:
        with undisturbed():
            found(SIZES)
    except Exception:  # code that a user wrote may raise anything; it is reported later
        return False
    return True


def _has_inner(made: nn.Module) -> bool:
    """Say whether a parameter of `made` has the inner width of a probe as an axis, or is packed."""
    return any(axis % SIZES.d_ff == 0 for one in made.parameters() for axis in one.shape)


def _of_instance(thing: nn.Module, reading: Reading, name: str) -> Code:
    """Judge the class of an instance that has sizes; what has none is called as it is."""
    own = type(thing)
    if any(True for _ in thing.parameters()) or sizes_said(own, reading):
        return of_instance(thing, _of_class(own, reading, own.__name__))
    component = _component(_telling(name or own.__name__, thing), reading)
    return Code(
        name or own.__name__,
        component,
        thing,
        lambda sizes: copy_of(thing).eval(),
        _signature(thing.forward, own.__name__),
        words_on(thing.forward, own),
    )


def _telling(name: str, thing: Any) -> str:
    """Return the name of a variable, or that of its type where only that says the component."""
    tells = component_named(name) or component_guessed(name)
    return name if tells or inspect.isroutine(thing) else type(thing).__name__


def of_instance(thing: nn.Module, found: Code) -> Code:
    """Return the class of the instance `thing`; Unclear where that holds other parameters."""
    assert found.construction is not None
    with undisturbed():
        fresh = found.construction(SIZES)
    # Stacks may differ in their number of layers.
    number = r"\b\d+\b" if found.component in ("encoder", "decoder") else r"$^"
    mine, theirs = (
        {re.sub(number, "*", name, count=1) for name, _ in one.named_parameters()}
        for one in (thing, fresh)
    )
    if mine != theirs:
        raise Unclear(
            f"The {found.name} given holds {', '.join(sorted(mine ^ theirs))} otherwise than one "
            f"that is built anew at other sizes, which is needed to judge it. Give the class, and "
            f"with given={{NAME: VALUE}} the arguments that make the difference."
        )
    sentence = f"an instance is judged as its class {found.name}, which is built at other sizes"
    return replace(found, said=(sentence, *found.said))


def _component(name: str, reading: Reading, *, heads: bool = False) -> str:
    found = reading.component or component_named(name, heads=heads) or component_guessed(name)
    if not found:
        raise Unclear(
            f"Nothing in the name {name!r} says which component it is.",
            f"Say so with --as COMPONENT (in Python: component='..'), one of: "
            f"{', '.join(COMPONENTS)}.",
            taken="",
        )
    return "multi_head_attention" if heads and found == "attention" else found


def _signature(call: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        return inspect.signature(call)
    except ValueError as failure:
        documented = _documented(call)
        if documented is not None:
            return documented
        raise Unclear(
            f"{name} is written in C and has no signature that can be read. Wrap it in a function "
            f"of your own, whose arguments have the names of what they carry."
        ) from failure


def _documented(call: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature in the first line of a docstring, None where there is none.

    Functions written in C have no other. A default that is no literal counts as None.
    """
    words = re.match(r"\s*\w+(?P<arguments>\([^()]*(\([^()]*\)[^()]*)*\))", call.__doc__ or "")
    if words is None:
        return None
    try:
        (made,) = ast.parse(f"def call{words['arguments']}: ...").body
    except SyntaxError:
        return None
    assert isinstance(made, ast.FunctionDef)
    given = made.args
    named = [*given.posonlyargs, *given.args]
    start = len(named) - len(given.defaults)
    defaults = [inspect.Parameter.empty] * start + [_literal(one) for one in given.defaults]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter(one.arg, kind, default=default)
        for one, default in zip(named, defaults, strict=True)
    ]
    parameters += [
        inspect.Parameter(
            one.arg, inspect.Parameter.KEYWORD_ONLY, default=default and _literal(default)
        )
        for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    return inspect.Signature(parameters)


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _without_self(thing: Any, name: str) -> inspect.Signature:
    found = _signature(_call(thing), name)
    static = isinstance(inspect.getattr_static(thing, _call(thing).__name__, None), staticmethod)
    return found.replace(parameters=[*found.parameters.values()][not static :])


@dataclass(frozen=True)
class _Called:
    """A callable that is called as it is: nothing of the caller's own is moved."""

    function: Callable[..., Any]

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return self.function(*inputs, **named)
