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
    "faults/test_faults.py",
    "targets/test_language_model_readings.py",
    "analysis/test_identify.py",
    "judging/test_stdio_suite.py",
    "targets/test_whole_models.py",
    "targets/test_cached_readings.py",
    "studies/vectors/test_vectors.py",
    "analysis/test_diagnosis.py",
    "targets/test_adapt.py",
    "targets/test_decoder_only.py",
    "targets/test_mixtures_of_experts.py",
    "targets/test_styles_of_models.py",
    "faults/test_reference_models.py",
    "studies/convert/test_convert.py",
    "harness/test_process.py",
    "targets/test_parameters_found.py",
    "studies/learning/test_learn_resume.py",
    "targets/test_target_padding.py",
    "interfaces/test_targets.py",
    "repository/test_repository.py",
    "judging/test_not_installed.py",
    "targets/test_arrays_moved_by_calls.py",
    "targets/test_reproductions.py",
    "targets/test_trust.py",
    "targets/test_interleaved_heads.py",
    "targets/test_whole_model_configurations.py",
    "targets/test_first_layer_inputs.py",
    "analysis/test_lines_jax.py",
    "studies/comparison/test_compare_backends.py",
    "targets/test_parts_as_objects.py",
    "testing/test_dropout_rate.py",
    "targets/test_without_output.py",
    "views/test_report_page.py",
    "targets/test_causal_layers.py",
    "interfaces/test_plugin.py",
    "testing/test_layer_calls.py",
    "targets/test_whole_models_by_lengths.py",
    "targets/test_guesses_of_names.py",
    "targets/test_component_constants.py",
    "interfaces/test_hostile_commands.py",
    "targets/test_parameters_beside_logits.py",
    "studies/index/test_index.py",
    "interfaces/test_nothing_compared.py",
    "views/test_cost_view.py",
    "targets/test_token_encoders.py",
)
"""The files that take longest, the longest first: by files, they leave no core idle at the end."""


@pytest.hookimpl(tryfirst=True)  # before the option -m selects by the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Divide the studies, and run the files that take longest first."""
    divide(items)
    ranks = {str(HERE / file): rank for rank, file in enumerate(DEAREST)}
    items.sort(key=lambda item: ranks.get(str(item.path), len(DEAREST)))
