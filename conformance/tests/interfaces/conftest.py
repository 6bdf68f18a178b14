from collections.abc import Iterator

import pytest
from arrival import Arrivals, arrivals


@pytest.fixture(scope="module")
def place() -> Iterator[Arrivals]:
    """Yield a server to which the hanging targets of a module announce themselves."""
    with arrivals() as server:
        yield server
