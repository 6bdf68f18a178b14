import shape_checks

shape_checks.install()  # before any test imports what is checked

import jaxtyping  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)

CHECKED = ("harness", "testing")
"""The folders whose tests run with the shapes checked: a check doubles the time of a call."""


@pytest.fixture(autouse=True)
def checked_shapes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the shapes in signatures at every call, in the folders that are named."""
    disable = request.path.parent.name not in CHECKED
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", disable)


@pytest.fixture(autouse=True)
def same_random_numbers() -> None:
    """Begin every test at the same random numbers of torch, whatever ran before it."""
    torch.default_generator.manual_seed(20170612)
