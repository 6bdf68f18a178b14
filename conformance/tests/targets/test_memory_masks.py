"""Decoder layers whose mask of the memory takes other forms than that of the target."""

import re
from pathlib import Path

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Unclear
from attentest_spec.clauses import clauses

SOURCE = (SUPPORT / "wild" / "own_memory_mask.py").read_text()
OF_LAYER = [one.slug for one in clauses().values() if one.component == "decoder_layer"]
MEMORY = ("decoder.source-mask-on-memory", "decoder.layer-formula", "decoder.memory-order")
OWN = "own = None if tgt_mask is None else tgt_mask.view(1, 1, steps, steps)"
KEEP = "keep = None if memory_mask is None else memory_mask[:, None, None, :]"
MISTAKES = {
    "ignored": ("self.cross_attn(x, memory, keep)", "self.cross_attn(x, memory)"),
    "of_target": (
        KEEP,
        f"{KEEP}\n        if own is not None and own.shape[-1] == memory.shape[1]:\n"
        "            keep = own if keep is None else keep & own",
    ),
    "of_first_sample": (KEEP, KEEP.replace("memory_mask[:, None", "memory_mask[:1, None")),
}


def layer(folder: Path, *changed: str, **settled: object) -> Bench:
    """Return the layer, with one text in the place of another, as it is read."""
    (folder / "layer.py").write_text(SOURCE.replace(*changed) if changed else SOURCE)
    return Bench.for_status(attentest.adapted(f"{folder / 'layer.py'}:DecoderLayer", **settled))


@pytest.mark.proof
def test_memory_mask_of_its_own_form_has_limits_of_its_own(tmp_path: Path):
    bench = layer(tmp_path)
    limits = bench.backend.limits
    assert tuple(limits.masks) == ("none", "causal")
    assert tuple(limits.memory_masks) == ("none", "padding")
    statuses = {slug: judge(bench, slug).status.value for slug in OF_LAYER}
    assert set(statuses.values()) == {"pass"}, statuses


@pytest.mark.proof
def test_layer_that_is_causal_by_itself_has_its_memory_mask_judged(tmp_path: Path):
    text = SOURCE.replace("tgt_mask=None, ", "").replace(
        OWN, "own = torch.ones(steps, steps, dtype=torch.bool).tril().view(1, 1, steps, steps)"
    )
    assert text.count("tgt_mask") == 1  # in the documentation alone
    (tmp_path / "layer.py").write_text(text)
    bench = Bench.for_status(attentest.adapted(f"{tmp_path / 'layer.py'}:DecoderLayer"))
    assert tuple(bench.backend.limits.masks) == ("causal",)
    assert tuple(bench.backend.limits.memory_masks) == ("none", "padding")
    assert {judge(bench, slug).status.value for slug in MEMORY[:2]} <= {"pass", "absent"}
    assert judge(bench, MEMORY[0]).status.value == "pass"


def test_choices_of_a_layer_that_is_causal_by_itself_are_measured(tmp_path: Path):
    """Its mask hides padding alone, as that of a layer of Marian does."""
    text = SOURCE.replace("tgt_mask=None, ", "").replace("nn.ReLU()", "nn.SiLU()")
    text = text.replace(
        OWN, "own = torch.ones(steps, steps, dtype=torch.bool).tril().view(1, 1, steps, steps)"
    )
    (tmp_path / "layer.py").write_text(text)
    bench = Bench.for_status(attentest.adapted(f"{tmp_path / 'layer.py'}:DecoderLayer"))
    assert bench.backend.choices["activation"] == "silu"
    assert judge(bench, MEMORY[1]).status.value == "pass"


@pytest.mark.proof
def test_layer_whose_first_step_sees_nothing_is_a_violation(tmp_path: Path):
    """Its outputs are no numbers, and none of them is a sum of others."""
    text = SOURCE.replace("tgt_mask=None, ", "").replace(
        OWN, "own = torch.ones(steps, steps, dtype=torch.bool).tril(-1).view(1, 1, steps, steps)"
    )
    (tmp_path / "layer.py").write_text(text)
    bench = Bench.for_status(attentest.adapted(f"{tmp_path / 'layer.py'}:DecoderLayer"))
    assert judge(bench, MEMORY[1]).status.value == "violation"


@share(4, rest=1)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_the_memory_mask_are_violations(mistake: str, tmp_path: Path):
    bench = layer(tmp_path, *MISTAKES[mistake])
    statuses = {slug: judge(bench, slug).status.value for slug in MEMORY}
    assert "violation" in statuses.values(), statuses


def test_memory_mask_that_is_inverted_is_a_question_and_then_a_violation(tmp_path: Path):
    changed = (KEEP, KEEP.replace("else memory_mask", "else ~memory_mask"))
    with pytest.raises(Unclear, match="shows one that says what is hidden"):
        layer(tmp_path, *changed)
    bench = layer(tmp_path, *changed, mask="memory_mask:keep")
    assert judge(bench, MEMORY[0]).status.value == "violation"


@pytest.mark.proof
def test_required_masks_that_block_by_minus_infinity_are_read_as_they_are(tmp_path: Path):
    """Each of the two is probed while the other one hides nothing, in the meaning that it has."""
    text = SOURCE.replace("masked_fill(~keep", "masked_fill(keep").replace("_mask=None", "_mask")
    text = text.replace(OWN, "own = tgt_mask[:, None]").replace(KEEP, "keep = memory_mask[:, None]")
    start, end = text.index('        """tgt_mask'), text.index("        steps =")
    text = text[:start] + text[end:]
    (tmp_path / "layer.py").write_text(text)
    bench = Bench.for_status(attentest.adapted(f"{tmp_path / 'layer.py'}:DecoderLayer"))
    assert "True blocks" in bench.backend.summary
    assert {judge(bench, slug).status.value for slug in MEMORY} == {"pass"}


@pytest.mark.proof
def test_mask_named_after_the_memory_is_its_mask_and_one_that_scales_scores_is_asked_about(
    tmp_path: Path,
):
    """Hidden keys get a score of zero, by which no convention shows."""
    text = SOURCE.replace("tgt_mask=None, ", "").replace(
        OWN, "own = torch.ones(steps, steps, dtype=torch.bool).tril().view(1, 1, steps, steps)"
    )
    text = re.sub(r'"""(?s:.)*?"""', "", text).replace("memory_mask", "z_mask")
    text = re.sub(r"\bmemory\b", "z", text)
    (tmp_path / "layer.py").write_text(text)
    found = attentest.adapted(f"{tmp_path / 'layer.py'}:DecoderLayer")
    assert tuple(found.limits.memory_masks) == ("none", "padding")
    fill = re.search(r"scores\.masked_fill\(.*\)", text)
    assert fill is not None, text
    (tmp_path / "layer.py").write_text(
        text.replace(fill[0], f"scores * keep if keep.shape[-2] == 1 else {fill[0]}")
    )
    with pytest.raises(Unclear, match="Nothing says what an entry of the z_mask"):
        attentest.adapted(f"{tmp_path / 'layer.py'}:DecoderLayer")
