"""The members of a whole file: the classes and functions it defines, and the component of each."""

import inspect
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from attentest.targets import resolve
from attentest_spec import Backend
from attentest_spec.registry import LoadFailure


@dataclass(frozen=True)
class Member:
    """A class or function of a file: its name, and its component ("" for none).

    `inside` is the model of the same file that is built with it, "" for none. `guessed` is True
    where a part of the name alone says the component: it counts where the numbers confirm it.
    `hinted` is True for a function whose last words say it, and whose arguments do not: where it
    cannot be read, that is no open question.
    `looks` is "mask", "model", "head" or "image" for what looks like one, and is no component.
    `undefined` says why a class of modules is not defined here, as a package is missing; or "".
    `holds` are the classes of the file that its code names, of one that attends to nothing itself,
    and `calls_given` says that it calls a module that it is given.
    """

    name: str
    component: str = ""
    inside: str = ""
    guessed: bool = False
    looks: str = ""
    hinted: bool = False
    undefined: str = ""
    holds: tuple[str, ...] = ()
    calls_given: bool = False


def members(target: str) -> list[Member] | None:
    """Return the members of the file or module `target`, in the order of the file.

    None for a file that holds a backend: that is judged as it is. Raises LoadFailure for a file
    that cannot be imported.
    """
    module = resolve.module_of(target)
    if isinstance(getattr(module, resolve.DEFAULT_OBJECT, None), Backend):
        return None
    from attentest.targets.definitions import UNDEFINED, definitions
    from attentest.targets.models.recognition import Recognition
    from attentest.targets.signatures import calls_given, held

    found = Recognition(module)
    own = list(definitions(module))
    names = {name for name, thing in own if inspect.isclass(thing)}
    defined = [
        Member(
            name,
            **found.facts(name, thing),
            holds=held(thing, names - {name}),
            calls_given=calls_given(thing),
        )
        for name, thing in own
    ]
    undefined: Mapping[str, str] = vars(module).get(UNDEFINED, {})
    return [*defined, *(Member(name, undefined=why) for name, why in undefined.items())]


_UNCALLED = ("cannot be built", "could not be built", "says what to give for")
"""Words of questions about how a class is built or called."""


def around(
    member: Member, failure: str, encoders: Collection[str], members: Iterable[Member]
) -> str:
    """Return the one of the `encoders` that `member` holds, "" where its question stays open.

    The `failure` has to be about how it is built or called. All other components that it holds are
    parts of others.
    """
    held = [one for one in members if one.name in member.holds]
    found = [one.name for one in held if one.name in encoders]
    if not held and member.calls_given:
        found = [one.name for one in members if one.name in encoders][:1]
    rest = [one for one in held if one.component and one.name not in encoders]
    is_open = not any(words in failure for words in _UNCALLED)
    if is_open or len(found) != 1 or not all(one.inside for one in rest):
        return ""
    return found[0]


def _members(*, target: str) -> list[dict[str, Any]] | None:
    found = members(target)
    return None if found is None else [asdict(one) for one in found]


def adapter_text(target: str, reading: Mapping[str, Any]) -> str:
    """Return the inferred adapter of `target` as a Python file.

    Raises LoadFailure where nothing can be inferred, or where nothing had to be.
    """
    backend = resolve.load(target, reading)
    written = getattr(backend, "written", None)
    if written is None:
        raise LoadFailure(f"{target} is a backend already: there is no adapter to write.")
    text: str = written()
    return text


METHODS: Mapping[str, Any] = {
    "members": _members,
    "adapter": lambda *, target, reading: adapter_text(target, reading),
}
"""The methods of a child process that looks at a file."""
