"""The formula of the whole model."""

from attentest.analysis.lines.formula import Formula, Step
from attentest.analysis.lines.formulas.layers import decoder, encoder
from attentest.analysis.lines.formulas.masks import padding, whole_target_mask
from attentest.analysis.lines.formulas.norm import norm
from attentest.analysis.lines.formulas.positions import positions
from attentest.analysis.lines.formulas.vocabulary import embedding, generator


def encode(formula: Formula, source: Step) -> Step:
    """Add the memory of the source tokens."""
    keep = padding(formula, source, formula.sizes.source_pad)
    return encoder(formula, "encoder", _embedded(formula, "source", source), keep)


def decode(formula: Formula, target: Step, memory: Step, source: Step) -> Step:
    """Add the generator's output for the target tokens and a memory of the source tokens."""
    sizes = formula.sizes
    name = f"padding mask of the {source.name}"
    known = next((one for one in formula.steps if one.name == name), None)
    hidden = known or padding(formula, source, sizes.source_pad)
    own = whole_target_mask(formula, target, sizes.target_pad)
    x = _embedded(formula, "target", target)
    state = decoder(formula, "decoder", x, memory, hidden, own)
    return generator(formula, "generator", state)


def _embedded(formula: Formula, side: str, tokens: Step) -> Step:
    rows = embedding(formula, f"{side}_embedding", tokens)
    summed = positions(formula, f"{side}_positions", rows)
    if formula.choices.embedding_norm == "none":
        return summed
    return norm(formula, f"{side}_embedding_norm", summed)
