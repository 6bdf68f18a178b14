"""Whole models whose id of padding is a constant of their code."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt.reading import Reading
from attentest.targets.models.building import building
from attentest.targets.models.inferring import infer
from attentest.targets.resolve import module_of
from attentest.targets.whole import AdaptedWhole
from attentest_spec import Backend

SOURCE = (SUPPORT / "wild_models" / "namespace.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("pad", [0, 1, 2])
def test_a_constant_id_of_padding_is_found(pad: int, tmp_path: Path) -> None:
    file = tmp_path / "constant.py"
    file.write_text(SOURCE.replace("args.pad\n", f"{pad}\n"))
    model = module_of(str(file)).TransformerModel
    built = building(model, "TransformerModel", Reading())
    found = infer(built, "TransformerModel", "", Reading())
    assert (found.pads, found.pad) == ("fixed", pad)
    assert not found.doubts


def test_an_id_of_padding_that_the_constructor_takes_is_not_fixed(tmp_path: Path) -> None:
    file = tmp_path / "handed.py"
    file.write_text(SOURCE)
    model = module_of(str(file)).TransformerModel
    built = building(model, "TransformerModel", Reading())
    assert infer(built, "TransformerModel", "", Reading()).pad is None


CALLER = SUPPORT / "wild_models" / "annotated.py"


@pytest.mark.parametrize("row", ["", ", padding_idx=0"])
def test_a_row_that_is_never_trained_is_that_of_padding_where_the_caller_makes_masks(
    row: str, tmp_path: Path
) -> None:
    text = CALLER.read_text(encoding="utf-8")
    assert "nn.Embedding(vocab, d_model)" in text
    file = tmp_path / "rows.py"
    file.write_text(
        text.replace("nn.Embedding(vocab, d_model)", f"nn.Embedding(vocab, d_model{row})")
    )
    built = building(module_of(str(file)).make_model, "make_model", Reading())
    found = infer(built, "make_model", "", Reading())
    assert (found.pads, found.pad) == (("fixed", 0) if row else ("call", None))


FLAT = SUPPORT / "wild_models" / "flat.py"
TABLES = "nn.Embedding(n_src_vocab, d_model)", "nn.Embedding(n_src_vocab, d_model, padding_idx=1)"


def gradient(backend: Backend) -> Status:
    bench = Bench(backend, diagnose=False, shrink=False)
    return judge(bench, "model.parameter-gradient").status


@pytest.mark.proof
def test_row_that_the_code_never_trains_is_assumed_to_be_the_padding(tmp_path: Path) -> None:
    code = edited(FLAT.read_text(encoding="utf-8"), TABLES)
    backend = adapted(tmp_path, "Transformer", code)
    assert backend.limits.untrained == (1,)
    assert isinstance(backend, AdaptedWhole)
    assert any("token 1 is the padding" in one for one in backend.assumed)
    assert gradient(backend) is Status.PASS
    strict = adapted(tmp_path, "Transformer", code, strict=True)
    assert strict.limits.untrained == ()
    assert gradient(strict) is Status.VIOLATION


def test_row_of_the_pad_id_that_is_given_is_no_other_row(tmp_path: Path) -> None:
    table = "nn.Embedding(n_src_vocab, d_model, padding_idx=src_pad_idx)"
    backend = adapted(
        tmp_path, "Transformer", edited(FLAT.read_text(encoding="utf-8"), (TABLES[0], table))
    )
    assert (backend.limits.untrained, backend.limits.trained_pad) == ((), False)
