"""The description of a backend: components, choices and limits, as it states them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from attentest.harness.errors import Unavailable
from attentest.results.text import line, plain, plain_value, summary
from attentest_spec import Backend, Choices, Limits


@dataclass(frozen=True)
class Facts:
    """The components, choices and limits of a backend."""

    components: tuple[str, ...]
    choices: Choices
    limits: Limits

    @classmethod
    def of(cls, backend: Backend) -> "Facts":
        """Ask `backend`; raises Unavailable where it cannot be described."""
        with _describing():
            return cls.read(described(backend))

    @classmethod
    def read(cls, description: Mapping[str, Any]) -> "Facts":
        """Read what :func:`described` returns; raises Unavailable like :meth:`of`."""
        with _describing():
            choices, limits = Choices.of(description["choices"]), Limits(**description["limits"])
            return cls(tuple(description["components"]), choices, limits)


@contextmanager
def _describing() -> Iterator[None]:
    try:
        yield
    except Unavailable:
        raise
    except Exception as failure:  # describing a backend runs code of its author
        raise Unavailable(f"it could not be described: {summary(failure)}") from failure


def described(backend: Backend) -> dict[str, Any]:
    """Return what a backend says of itself, as plain values."""
    return {
        "title": line(str(backend.title), 200),
        "components": [line(str(name)) for name in backend.components],
        "understood": [plain(str(one), 500) for one in getattr(backend, "understood", ())],
        "assumed": [plain(str(one), 500) for one in getattr(backend, "assumed", ())],
        "summary": line(str(getattr(backend, "summary", "")), 500),
        "choices": plain_value(dict(backend.choices)),
        "limits": plain_value(
            {
                name: sorted(value) if isinstance(value, tuple | list | set | frozenset) else value
                for name, value in vars(backend.limits).items()
            }
        ),
    }
