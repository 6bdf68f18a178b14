"""Code with a mistake that is asked about, or that does not conform."""

from collections.abc import Callable

from attentest import Report
from attentest.targets.adapt import Unclear


def is_asked_or_fails(check: Callable[[], Report]) -> bool:
    """Say whether `check` is a question, or its report does not conform."""
    try:
        return not check().conforms
    except Unclear:
        return True
