"""The table of the choices of whole decoder-only models: their norms, layout and positions."""

from attentest_spec.choices.choice import entry

LANGUAGE_MODEL = (
    entry(
        "norm_kind",
        "Which norm have the layers, the ends of their stacks and whole models?",
        ("layer", "layer normalisation"),
        ("rms", "RMS normalisation, without a mean"),
        paper="layer",
        clause="language_model.norm-kind",
        source="section 3.1; Zhang and Sennrich 2019 for RMS normalisation",
        why="Equal where the mean of a row is 0; elsewhere every layer differs.",
    ),
    entry(
        "block_norms",
        "Where are the norms of a decoder-only block?",
        ("post", "norm(x + sublayer(x))"),
        ("pre", "x + sublayer(norm(x))"),
        ("post-branch", "x + norm(sublayer(x))"),
        ("sandwich", "x + norm(sublayer(norm(x))), with a norm of its own on each side"),
        paper="post",
        clause="language_model.block-norms",
        source="section 3.1; OLMo team 2024, section 2, for the third; Gemma team 2024, section 2, "
        "for the fourth",
        why="Models of both have norms of the same shape and of similar names; loaded into one "
        "another they give other numbers.",
    ),
    entry(
        "block_layout",
        "Is the feed-forward network of a decoder-only block after attention, or parallel to it?",
        ("sequential", "it is given what attention leaves"),
        ("parallel-one-norm", "both are given one norm of the input of the block"),
        ("parallel-two-norms", "each is given a norm of its own of the input of the block"),
        paper="sequential",
        clause="language_model.block-layout",
        source="section 3.1; Chowdhery et al. 2022, section 2",
        why="Weights fit in either order; with two norms that are exchanged, too.",
    ),
    entry(
        "padded_positions",
        "Which positions have tokens of a padded row where none are given?",
        ("columns", "the numbers of their columns, padding counted"),
        ("real-tokens", "the number of real tokens before them"),
        paper=None,
        clause="language_model.padded-positions",
        source="not in the paper, where padding is on the right",
        why="With padding on the left the first changes every position that is added to an "
        "embedding; only the distances of rotary positions stay.",
    ),
    entry(
        "packed_documents",
        "May a row hold several documents, each from where its positions begin again?",
        ("one-text", "a row is one text, whatever the positions: every earlier token is seen"),
        ("by-positions", "a position that is not one more than the last one begins a document"),
        paper="one-text",
        clause="language_model.packed-documents",
        source="not in the paper; Krell et al. 2021, section 3",
        why="A document that sees the one before it is scored by another text; a row of one "
        "document does not show it.",
    ),
    entry(
        "logit_cap",
        "Are the logits bounded softly?",
        ("none", "the linear map as it is"),
        paper="none",
        clause="generator.logit-cap",
        source="section 3.4 has none; Gemma team 2024, section 2",
        why="The best token stays the best, so that greedy text does not show it; probabilities "
        "and losses do.",
        number="a number c above 0: c tanh(logit / c)",
    ),
)
"""The choices that whole decoder-only models have made."""
