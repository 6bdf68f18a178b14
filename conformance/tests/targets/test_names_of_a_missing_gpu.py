"""Code that names CUDA as the device of what it makes, where torch is built without CUDA."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from mistaken_code import adapted, asked_or_broken, broken, edited
from plain_gpt import PLAIN_GPT
from proof import share
from torch import Tensor, nn

import attentest
from attentest_spec.torch.meta import OnMeta
from attentest_spec.torch.missing_cuda import _MAKERS, _NEW, ignore_names
from attentest_spec.torch.settings import keep_functions, watch

pytestmark = pytest.mark.skipif(torch.version.cuda is not None, reason="CUDA is there")

FORMULA = "language_model.formula"
SAID = "of its file names cuda, and torch is built without CUDA here"
PLACES = ("tokens.shape[1], device=tokens.device", 'tokens.shape[1], device="cuda"')
WAYS = [
    (PLACES,),
    (PLACES, ("nn.Linear(width, vocab_size)", 'nn.Linear(width, vocab_size).to("cuda:0")')),
    (
        ("class Block", 'DEVICE = torch.device("cuda")\n\n\nclass Block'),
        ("tokens.shape[1], device=tokens.device", "tokens.shape[1]).to(DEVICE"),
    ),
]


@pytest.fixture(autouse=True)
def _torch_as_it_was() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        for owner, names in ((torch, _MAKERS), (Tensor, _NEW), (Tensor, "to"), (nn.Module, "to")):
            for name in names.split():
                patched.setattr(owner, name, getattr(owner, name))
        yield
    keep_functions()


@share(3, rest=1)
@pytest.mark.parametrize("edits", WAYS, ids=["made", "moved", "named"])
def test_named_gpu_is_the_device_of_all_else(
    edits: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "GPT", edited(PLAIN_GPT, *edits))
    assert any(SAID in one for one in backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, FORMULA)


@pytest.mark.proof
def test_mistakes_of_code_that_names_a_gpu_are_no_pass(tmp_path: Path) -> None:
    source = edited(PLAIN_GPT, PLACES)
    assert asked_or_broken(tmp_path, "GPT", source, ".triu(1)", ".triu(2)", FORMULA)


@pytest.mark.proof
def test_written_adapter_of_code_that_names_a_gpu_conforms(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", edited(PLAIN_GPT, PLACES))
    text = backend.written()  # type: ignore[attr-defined]
    assert "ignore_names()" in text
    (tmp_path / "written.py").write_text(text)
    assert not broken(attentest.adapted(str(tmp_path / "written.py:backend")), FORMULA)


CHOSEN = [
    'DEVICE = "cuda" if torch.cuda.is_available() else "cpu"',
    'DEVICE = "cpu"\nif torch.cuda.is_available():\n    DEVICE = "cuda"',
]


@pytest.mark.parametrize("chosen", CHOSEN, ids=["expression", "statement"])
def test_gpu_under_a_condition_is_no_assumption(chosen: str, tmp_path: Path) -> None:
    chosen += "\n\n\nclass Block"
    source = edited(
        PLAIN_GPT, ("class Block", chosen), (PLACES[0], "tokens.shape[1], device=DEVICE")
    )
    made = torch.arange
    backend = adapted(tmp_path, "GPT", source)
    assert not any("names cuda" in one for one in backend.assumed)  # type: ignore[attr-defined]
    assert torch.arange is made


def test_named_gpu_is_meta_on_meta() -> None:
    ignore_names()
    assert torch.ones(2, device="cuda").device.type == "cpu"
    with OnMeta():
        made = torch.ones(2, device="cuda")
        assert made.is_meta
        assert made.to("cuda") is made
        assert made.to("cuda", torch.float64).dtype == torch.float64


def test_names_ignored_late_are_no_change_of_torch() -> None:
    with watch(set()):
        torch.arange(2)
    ignore_names()
    changed: set[str] = set()
    with watch(changed):
        assert torch.arange(2, device="cuda").device.type == "cpu"
    assert not changed
    assert torch.arange(2, device="cuda").device.type == "cpu"
