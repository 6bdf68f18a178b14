import gc

import shape_checks

gc.disable()  # until all tests are collected: of all that is imported until then, nothing is unused
shape_checks.install()  # before any test imports what is checked

from collections.abc import Iterator  # noqa: E402
from pathlib import Path  # noqa: E402

import jaxtyping  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from proof import divide  # noqa: E402

from attentest.harness.process_state import collect_rarely  # noqa: E402

torch.set_num_threads(1)

HERE = Path(__file__).parent

CHECKED = ("harness", "testing")
"""The folders whose tests run with the shapes checked: a check doubles the time of a call."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Check the shapes in signatures at every call, in the folders that are named.

    No fixture does this: those of a module are made before those of a test.
    """
    jaxtyping.config.update("jaxtyping_disable", item.path.parent.name not in CHECKED)
    try:
        return (yield)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True)
def same_random_numbers() -> None:
    """Begin every test at the same random numbers of torch, whatever ran before it."""
    torch.default_generator.manual_seed(20170612)


def pytest_collection_finish() -> None:
    """Collect garbage as rarely as the processes that judge: all that stays is imported."""
    collect_rarely()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Fail a test whose fixtures turn gradients off."""
    yield from gradients_stay_on()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Fail a test that turns gradients off: code that was judged may have done it."""
    yield from gradients_stay_on()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Fail a test whose fixtures turn gradients off when they end."""
    yield from gradients_stay_on()


def gradients_stay_on() -> Iterator[None]:
    """Turn gradients on after what is wrapped, and fail where they were off."""
    try:
        yield
    finally:
        on = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
    assert on, "gradients are left switched off"


DEAREST = (
    "analysis/test_diagnosis.py",
    "faults/test_faults.py",
    "interfaces/test_hostile_commands.py",
    "judging/test_hostile.py",
    "targets/test_whole_models.py",
    "analysis/test_identify.py",
    "faults/test_unusual.py",
    "targets/test_adapt.py",
    "targets/test_positions.py",
    "targets/test_reproductions.py",
    "targets/test_parameters_found.py",
    "targets/test_language_model_readings.py",
    "interfaces/test_interruption.py",
    "judging/test_sizes_in_use.py",
    "studies/comparison/test_compare_backends.py",
    "studies/vectors/test_vectors.py",
    "studies/convert/test_convert.py",
    "studies/learning/test_learn_resume.py",
    "targets/test_trust.py",
    "targets/test_training_styles.py",
    "targets/test_decoder_only.py",
    "studies/learning/test_learn_training.py",
    "judging/test_stdio_suite.py",
    "judging/test_score.py",
    "targets/test_beams.py",
    "interfaces/test_declared.py",
    "interfaces/test_plugin.py",
    "studies/comparison/test_compare_choices.py",
    "testing/test_dropout_rate.py",
    "faults/test_reference_models.py",
    "targets/test_construction.py",
    "interfaces/test_full_disk.py",
    "interfaces/test_python.py",
    "interfaces/test_targets.py",
    "targets/test_token_encoders.py",
    "targets/test_file_modules.py",
    "targets/test_caches.py",
    "interfaces/test_check_file.py",
    "repository/test_repository.py",
    "interfaces/test_check.py",
)
"""The files that take longest, the longest first: by files, they leave no core idle at the end."""


@pytest.hookimpl(tryfirst=True)  # before the option -m selects by the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Divide the studies, and run the files that take longest first."""
    divide(items)
    ranks = {str(HERE / file): rank for rank, file in enumerate(DEAREST)}
    items.sort(key=lambda item: ranks.get(str(item.path), len(DEAREST)))
