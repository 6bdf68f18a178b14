"""Modules in plain lists and dictionaries, which torch does not register as parts of a module."""

from collections.abc import Iterator

from torch import nn

_QUESTION = (
    "{} of {} is a plain {}, which torch does not register: the {} modules in it are no part of "
    "the module, so that no optimiser trains them, and `to` and `state_dict` leave them out. "
    "nn.{} registers them"
)


def unregistered(module: nn.Module) -> str:
    """Return the reason why modules with parameters are no parts, "" for none.

    One module alone may be in a list on purpose, so that it is no part: it is nothing where there
    are others.
    """
    held = dict.fromkeys(module.modules())
    least = 2 if any(True for _ in module.parameters()) else 1
    for one in held:
        if type(one).__module__.partition(".")[0] in ("torch", __name__.partition(".")[0]):
            continue
        for own, value in vars(one).items():
            found = [part for part in _items(value) if part not in held and _is_trained(part)]
            if len(found) >= least:
                kind, other = ("list", "ModuleList")
                if isinstance(value, dict):
                    kind, other = ("dictionary", "ModuleDict")
                return _QUESTION.format(own, type(one).__name__, kind, len(found), other)
    return ""


def _items(value: object) -> Iterator[nn.Module]:
    """Yield the modules in a list or in the values of a dictionary, those of torch's own not."""
    items = value.values() if type(value) is dict else value if type(value) is list else ()
    yield from (one for one in items if isinstance(one, nn.Module))


def _is_trained(module: nn.Module) -> bool:
    return any(one.requires_grad for one in module.parameters())
