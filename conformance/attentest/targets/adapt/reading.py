"""User settings for code that was not written for the contract."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from attentest_spec import CHOICES, COMPONENTS
from attentest_spec.choices import Value
from attentest_spec.names import require
from attentest_spec.registry import LoadFailure

MASKS = ("keep", "blocks", "additive", "lengths")
"""The meanings of a mask: True may be attended, True is hidden, added to the scores, lengths."""

LAYOUTS = ("batch-first", "sequence-first")
"""The first axis of sequences: batch or length."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Settings of the user; all that is empty is read off the code.

    `component` says which one it is. `arguments` maps a word of the contract (an input such as
    "mask", or a size such as "d_model") to the argument that carries it, `given` an argument to a
    fixed value. `mask` is one of :data:`MASKS`, for one argument "src_mask:keep"; `layout` is one
    of :data:`LAYOUTS`; `choices` are declared. `parameters` maps a canonical parameter, or what its
    name begins with, to the place that the code has for it. `strict` judges choices that are not
    declared by the paper's; `anyway` judges code even though its reading is in doubt. Raises
    UnknownName for a word that is none, and ValueError for no option of a choice.
    """

    component: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    mask: str = ""
    layout: str = ""
    choices: Mapping[str, Value] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False
    anyway: bool = False

    def __post_init__(self) -> None:
        """Check every word."""
        if self.component:
            require("component", self.component, COMPONENTS)
        for meaning in self._meanings().values():
            require("meaning of a mask", meaning, MASKS)
        if self.layout:
            require("layout", self.layout, LAYOUTS)
        for name, value in self.choices.items():
            CHOICES[require("choice", name, CHOICES)].check(value)

    def meaning_of(self, argument: str) -> str:
        """Return what the mask `argument` means, "" where the user does not say it."""
        meanings = self._meanings()
        return meanings.get(argument, meanings.get("", ""))

    def _meanings(self) -> dict[str, str]:
        """Return the meaning by the argument, "" for all others: "keep", "a:keep,b:blocks"."""
        pairs = (one.rpartition(":") for one in self.mask.split(",") if one)
        return {argument.strip(): meaning.strip() for argument, _, meaning in pairs}

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that are not empty; values in `given` stay the objects they are."""
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """Options that may answer a question; they are tried before it is asked."""

    component: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> str:
        """The options of the command."""
        words = [f"--as {self.component}"] * bool(self.component)
        words += [f"--argument {role}={own}" for role, own in self.arguments.items()]
        words += [f"--give {own}={value}" for own, value in self.given.items()]
        return " ".join(words)

    @property
    def python(self) -> str:
        """The same as arguments of a function."""
        said = {name: value for name, value in vars(self).items() if value}
        return ", ".join(f"{name}={value!r}" for name, value in said.items())

    def added(self, reading: Reading) -> Reading:
        """Return `reading` with these options beside its own."""
        return replace(
            reading,
            component=self.component or reading.component,
            arguments={**reading.arguments, **self.arguments},
            given={**reading.given, **self.given},
        )


class Unclear(LoadFailure):
    """Code that could not be read; its text is one paragraph that says what to add.

    `attempts` are options that may answer it, and `rest` the sentences that follow what is said of
    them. `taken` is the component that it was taken for where it may be another one, "" for none;
    None where no other one is meant. `built`: the attempts give arguments of a constructor.
    """

    def __init__(
        self,
        text: str,
        rest: str = "",
        *,
        attempts: Sequence[Attempt] = (),
        taken: str | None = None,
        built: bool = False,
    ) -> None:
        super().__init__(f"{text} {rest}".rstrip())
        self.text, self.rest = text, rest
        self.attempts, self.taken, self.built = attempts, taken, built


class Contrary(Unclear):
    """Code whose documentation and numbers contradict each other: one of them is a mistake."""


class Misused(Contrary):
    """Code whose layers use the mask `argument` as the contrary of what all else says it is.

    `meant` is what an entry means, and `used` what the layers make of it.
    """

    def __init__(self, text: str, *, argument: str, meant: str, used: str) -> None:
        super().__init__(text)
        self.argument, self.meant, self.used = argument, meant, used


class RaisesAsBuilt(Contrary):
    """Code whose call raises in the precision that it is built in: no other reading helps."""


class Uncallable(Unclear):
    """Code that could not be built for probing, or not be called."""


class Offered(Unclear):
    """Code that computes its component with an option, which the text names."""


class Unexplained(Unclear):
    """A whole model that is called and built, and whose numbers no option gives."""


class Uncovered(Unclear):
    """Code that the spec does not describe: the name of a component changes nothing of that."""


class Unmeant(Uncovered):
    """Code whose mask changes its output, and hides no key as either meaning of an entry would."""


class Windowed(Uncovered):
    """Code whose positions see near ones alone, which no other way of reading it changes."""


def own_recipe(component: str, name: str) -> str:
    """Return the two lines of a file that build `name` as the user says."""
    return (
        f"`from attentest_spec.torch import Recipe, TorchBackend` and `backend = "
        f'TorchBackend(name="mine", title="mine", recipes={{"{component}": '
        f"Recipe(build=lambda sizes: {name}(sizes.d_model, ..))}})`"
    )


GUIDE = "docs/how-to/add-an-implementation.md"
"""The page that shows how a backend is written by hand."""

_STEPS = (
    "a recipe of three functions: `from attentest_spec.torch import cached_decoding`, and "
    "`cached_decoding(build, start=lambda model, source: .., step=lambda model, cache, tokens: "
    "(scores, cache), reorder=lambda model, cache, rows: .., parameters=PARAMETERS)`. For a cache "
    "class, or a model that takes past_key_values, the cache that these functions pass on is that "
    "object; `attentest check FILE:MODEL --write-adapter` writes build and PARAMETERS"
)
_TEXT_STEPS = (
    "a recipe of three functions: `from attentest_spec.torch import cached_language_model`, and "
    "`cached_language_model(build, start=lambda model, rows: .., step=lambda model, cache, tokens, "
    "mask, positions: (scores, cache), reorder=lambda model, cache, rows: .., "
    "parameters=PARAMETERS)`; `attentest check FILE:MODEL --write-adapter` writes build and "
    "PARAMETERS"
)
LAYER = (
    "{} is a layer of a decoder-only model, and is not read by itself: name the class of the whole "
    "model, or the classes of its attention, its network and its norms. A backend that is written "
    "by hand provides causal_layer: attentest new writes a file to begin with."
)
OBJECT = "Give the class {}, and not an object of it: sizes are to vary."
_PROGRAMS = {"cached_decoding": _STEPS, "cached_language_model": _TEXT_STEPS}
BY_RECIPE = (*_PROGRAMS, "grouped_optimiser", "padded_batch", "packed_batch")


def question_of_calls(component: str, name: str) -> str:
    """Return what is asked where `name` should be judged as one of these components."""
    inputs = ", ".join(COMPONENTS[component].inputs)
    plain = (
        f"`from attentest_spec.torch import of_function` and `backend = of_function(lambda "
        f'{inputs}: .., "{component}")`'
    )
    asked = _PROGRAMS.get(component, plain)
    return (
        f"{name} cannot be read as {component} by itself: nothing in its signature says how its "
        f"calls follow each other. Write in a file of your own {asked}; {GUIDE} shows it."
    )
