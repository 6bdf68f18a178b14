"""A decoder-only model that trains more than its logits need: a question, or a mistake."""

from pathlib import Path

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.targets import resolve
from attentest.targets.adapt import Unclear

SOURCE = (SUPPORT / "wild_language_models" / "stacked.py").read_text()
HEAD = "        self.ln_f_g = nn.Parameter"
CALL = "    def forward(self, inputs):"
RESULT = "        return layer_norm(x, self.ln_f_g, self.ln_f_b) @ self.wte.T"
MORE = "        self.more = nn.Parameter(torch.randn({}))\n"
CLAUSE = "language_model.parameter-count"


def written(folder: Path, *changes: tuple[str, str]) -> str:
    """Write the model with `changes` to `folder`, and return it as a target."""
    text = SOURCE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "model.py").write_text(text)
    return f"{folder / 'model.py'}:GPT2"


@pytest.mark.proof
def test_a_second_head_is_asked_about(tmp_path: Path) -> None:
    target = written(
        tmp_path,
        (HEAD, MORE.format("n_embd") + HEAD),
        (RESULT, RESULT + ", x[:, -1] @ self.more"),
    )
    with pytest.raises(Unclear, match="GPT2 trains more beside the logits, for another result"):
        resolve.load(target)


@pytest.mark.exhaustive
def test_a_table_of_an_input_that_is_not_given_is_asked_about(tmp_path: Path) -> None:
    segments = "        if segments is not None:\n            x = x + self.more[segments]\n"
    mask = "        mask = (1 -"
    target = written(
        tmp_path,
        (HEAD, MORE.format("2, n_embd") + HEAD),
        (CALL, "    def forward(self, inputs, segments=None):"),
        (mask, segments + mask),
    )
    with pytest.raises(Unclear, match=r"trains more, .* depend on none of them without segments"):
        resolve.load(target)


@pytest.mark.proof
def test_a_parameter_that_nothing_depends_on_is_a_violation(tmp_path: Path) -> None:
    target = written(tmp_path, (HEAD, MORE.format("n_embd") + HEAD))
    report = attentest.check(target, clauses=[CLAUSE])
    assert report[CLAUSE].status == "violation", str(report)


LABELLED = "    def forward(self, inputs, targets=None):"
LOGITS = "        logits = " + RESULT.removeprefix("        return ")


def of_loss(numbers: str) -> str:
    """Return the end of a call that returns the loss of `numbers` beside logits, with targets."""
    flat = "LOGITS.flatten(0, 1), targets.flatten()".replace("LOGITS", numbers)
    loss = f"nn.functional.cross_entropy({flat}) if targets is not None else None"
    return f"{LOGITS}\n        return logits, {loss}"


@pytest.mark.proof
def test_labels_show_that_nothing_depends_on_a_parameter(tmp_path: Path) -> None:
    more = (HEAD, MORE.format("n_embd") + HEAD)
    target = written(tmp_path, more, (CALL, LABELLED), (RESULT, of_loss("logits")))
    report = attentest.check(target, clauses=[CLAUSE])
    assert report[CLAUSE].status == "violation", str(report)
    assert any("more is held and not used" in one for one in resolve.load(target).assumed)


@pytest.mark.proof
@pytest.mark.parametrize("own", ["use_cache=False", "past_kv=None"])
def test_switches_and_caches_are_no_inputs_of_a_parameter(own: str, tmp_path: Path) -> None:
    more = (HEAD, MORE.format("n_embd") + HEAD)
    target = written(tmp_path, more, (CALL, f"    def forward(self, inputs, {own}):"))
    report = attentest.check(target, clauses=[CLAUSE])
    assert report[CLAUSE].status == "violation", str(report)


@pytest.mark.proof
def test_a_parameter_behind_a_switch_is_asked_about(tmp_path: Path) -> None:
    target = written(
        tmp_path,
        (HEAD, MORE.format("n_embd") + HEAD),
        (CALL, "    def forward(self, inputs, pooled=False):"),
        (RESULT, RESULT + " + ((x @ self.more)[..., None] if pooled else 0.0)"),
    )
    with pytest.raises(Unclear, match="trains more beside the logits"):
        resolve.load(target)


@pytest.mark.proof
def test_a_head_of_the_loss_alone_is_asked_about(tmp_path: Path) -> None:
    more = (HEAD, MORE.format("n_embd, n_vocab") + HEAD)
    target = written(tmp_path, more, (CALL, LABELLED), (RESULT, of_loss("(x @ self.more)")))
    with pytest.raises(Unclear, match="trains more beside the logits"):
        resolve.load(target)


POSITIONS = "        self.wpe = nn.Parameter(0.01 * torch.randn(n_ctx, n_embd))"
SINES = """        speeds = 10_000 ** -(torch.arange(0, n_embd, 2).double() / n_embd)
        angles = torch.arange(n_ctx)[:, None] * speeds
        waves = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :n_embd]
        self.wpe = nn.Parameter(waves.to(self.wte.dtype), requires_grad=False)"""
FROZEN = POSITIONS.replace("n_embd))", "n_embd), requires_grad=False)")


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(
    ("table", "slug", "status"),
    [
        (SINES, "language_model.formula", "pass"),
        (SINES, "language_model.parameter-count", "pass"),
        (FROZEN, "language_model.gradient", "violation"),
    ],
)
def test_sines_that_are_not_trained_are_no_learned_table(
    table: str, slug: str, status: str, tmp_path: Path
) -> None:
    report = attentest.check(written(tmp_path, (POSITIONS, table)), clauses=[slug])
    assert report[slug].status == status, str(report)


@pytest.mark.exhaustive
def test_a_trained_factor_of_the_logits_is_one_question(tmp_path: Path) -> None:
    factor = "        self.factor = nn.Parameter(torch.ones(()))\n"
    scaled = RESULT.replace("return ", "return self.factor * ")
    target = written(tmp_path, (HEAD, factor + HEAD), (RESULT, scaled))
    with pytest.raises(Unclear, match="no option of the specification gives its numbers"):
        resolve.load(target)
