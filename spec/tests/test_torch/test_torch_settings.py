"""Torch's global settings and functions: changes are reported and undone."""

import functools
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch._dynamo  # its first import replaces functions of torch, whoever needs it
from torch import nn

from attentest_spec.sizes import Sizes
from attentest_spec.torch import Recipe, TorchBackend, settings

SIZES = Sizes(d_model=6, heads=2)


def test_torch_settings_changed_by_code_are_reported_and_restored() -> None:
    def build(sizes: Sizes) -> nn.Module:
        torch.set_default_dtype(torch.float16)
        return nn.Linear(2, 3)

    def call(built: nn.Module, x: torch.Tensor) -> torch.Tensor:
        torch.set_num_threads(torch.get_num_threads() + 1)
        return built(x)

    threads = torch.get_num_threads()
    recipe = Recipe(build=build, call=call)
    part = TorchBackend(name="rude", title="", recipes={"generator": recipe}).build(
        "generator", SIZES
    )
    assert torch.get_default_dtype() == torch.float32
    assert part.global_state()["changed"] == ("default dtype",)
    part(np.ones((1, 2)))
    assert torch.get_num_threads() == threads
    assert part.global_state()["changed"] == ("default dtype", "threads")


def test_replaced_functions_are_reported_and_restored() -> None:
    softmax, relu = torch.softmax, torch.nn.functional.relu

    def build(sizes: Sizes) -> nn.Module:
        torch.nn.functional.relu = torch.sigmoid
        return nn.Linear(2, 3)

    def call(built: nn.Module, x: torch.Tensor) -> torch.Tensor:
        torch.softmax = torch.Tensor.softmax = max  # type: ignore[assignment]
        return built(x)

    recipe = Recipe(build=build, call=call)
    part = TorchBackend(name="rude", title="", recipes={"generator": recipe}).build(
        "generator", SIZES
    )
    assert torch.nn.functional.relu is relu
    assert part.global_state()["changed"] == ("function torch.nn.functional.relu",)
    part(np.ones((1, 2)))
    assert torch.softmax is softmax
    assert torch.ones(2).softmax(0).tolist() == [0.5, 0.5]
    assert "function torch.softmax" in part.global_state()["changed"]
    assert "function torch.Tensor.softmax" in part.global_state()["changed"]


@pytest.mark.parametrize(
    ("removed", "added"),
    [("", "third"), ("first", ""), ("second", ""), ("second", "third"), ("first", "third")],
)
def test_functions_that_are_added_removed_or_renamed_are_noticed(
    removed: str, added: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = SimpleNamespace(first=max, second=min)
    monkeypatch.setattr(settings, "_OWNERS", {"torch": owner})
    before = settings._attributes()
    value = vars(owner).pop(removed, abs)
    if added:
        setattr(owner, added, value)
    assert settings._attributes() != before


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what is known of torch's functions, before the test and after it."""
    monkeypatch.setattr(torch, "manual_seed", torch.manual_seed)
    settings._functions.cache_clear()
    yield
    monkeypatch.undo()
    settings._functions.cache_clear()


@pytest.mark.usefixtures("restored")
def test_import_of_the_compiler_of_torch_is_no_change() -> None:
    changed: set[str] = set()
    with settings.watch(changed):
        wrapped = torch._disable_dynamo(torch.manual_seed)
        torch.manual_seed = wrapped
    with settings.watch(changed):
        pass
    assert changed == set()
    assert torch.manual_seed is wrapped


@pytest.mark.usefixtures("restored")
def test_function_that_code_wraps_is_a_change() -> None:
    changed: set[str] = set()
    before = torch.manual_seed
    with settings.watch(changed):
        torch.manual_seed = functools.wraps(before)(lambda seed: before(seed + 1))
    assert changed == {"function torch.manual_seed"}
    assert torch.manual_seed is before
