"""The formula of the decoder-only model and of its blocks."""

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest.analysis.lines.formulas.feed_forward import feed_forward, residual_sum
from attentest.analysis.lines.formulas.masks import causal
from attentest.analysis.lines.formulas.multi_head_attention import multi_head_attention
from attentest.analysis.lines.formulas.norm import norm
from attentest.analysis.lines.formulas.positions import positions
from attentest.analysis.lines.formulas.vocabulary import embedding, generator

ATTENTION, NETWORK = "self_attention", "feed_forward"


def language_model(formula: Formula, tokens: Step) -> Step:
    """Add the generator's output for tokens without padding, at the positions 0 to T - 1."""
    choices = formula.choices
    x = positions(formula, "positions", embedding(formula, "embedding", tokens))
    if choices.embedding_norm != "none":
        x = norm(formula, "embedding_norm", x)
    seen = causal(formula, tokens.value.shape[1])
    for number in range(formula.sizes.layers):
        x = _block(formula, f"layers.{number}", x, seen)
    if choices.final_norm == "present":
        x = norm(formula, "norm", x)
    return generator(formula, "generator", x)


def causal_layer(formula: Formula, x: Step) -> Step:
    """Add one block for states without padding."""
    return _block(formula, "", x, causal(formula, x.value.shape[1]))


def _block(formula: Formula, part: str, x: Step, seen: Step) -> Step:
    """Add causal self-attention and the feed-forward network, in turn or next to each other."""
    if formula.choices.block_layout == "sequential":
        x = _closed(formula, part, ATTENTION, x, *_attention(formula, part, x, seen))
        return _closed(formula, part, NETWORK, x, *_network(formula, part, x))
    (attended, normed), (fed, _) = _attention(formula, part, x, seen), _network(formula, part, x)
    both = formula.step(
        part,
        "sum of both branches",
        lambda attended, fed: attended + fed,
        attended,
        fed,
        text="attention + feed-forward network",
        axes=x.axes,
        mistakes=[
            Mistake("the attention alone", lambda attended, fed: attended),
            Mistake("the feed-forward network alone", lambda attended, fed: fed),
        ],
    )
    return _closed(formula, part, ATTENTION, x, both, normed)


def _attention(formula: Formula, part: str, x: Step, seen: Step) -> tuple[Step, Step | None]:
    """Add what attention adds to x; return it, and the norm of x where there is one."""
    normed = _opened(formula, part, ATTENTION, x)
    own, name = normed or x, _under(part, ATTENTION)
    branch = multi_head_attention(formula, name, own, own, own, seen)
    return _ended(formula, part, ATTENTION, branch), normed


def _network(formula: Formula, part: str, x: Step) -> tuple[Step, Step | None]:
    """Add what the feed-forward network adds to x; return it, and the norm of x."""
    shared = formula.choices.block_layout == "parallel-one-norm"
    normed = _opened(formula, part, ATTENTION if shared else NETWORK, x)
    branch = feed_forward(formula, _under(part, NETWORK), normed or x)
    return _ended(formula, part, NETWORK, branch), normed


def _opened(formula: Formula, part: str, name: str, x: Step) -> Step | None:
    """Add the norm of x before a sublayer, None where there is none; a shared one is added once."""
    if formula.choices.block_norms not in ("pre", "sandwich"):
        return None
    own = _under(part, f"{name}_norm")
    known = [one for one in formula.steps if one.part == own and not one.optional]
    return known[-1] if known else norm(formula, own, x)


def _ended(formula: Formula, part: str, name: str, branch: Step) -> Step:
    """Add the norm of what a sublayer returns, where there is one."""
    match formula.choices.block_norms:
        case "post-branch":
            return norm(formula, _under(part, f"{name}_norm"), branch)
        case "sandwich":
            return norm(formula, _under(part, f"{name}_branch_norm"), branch)
        case _:
            return branch


def _closed(
    formula: Formula, part: str, name: str, x: Step, branch: Step, normed: Step | None
) -> Step:
    """Add the residual sum, and its norm where that comes last."""
    title = f"{name} residual sum".replace("_", " ")
    summed = residual_sum(formula, part, title, x, branch, normed)
    if formula.choices.block_norms != "post":
        return summed
    return norm(formula, _under(part, f"{name}_norm"), summed)


def _under(part: str, name: str) -> str:
    return f"{part}.{name}" if part else name
