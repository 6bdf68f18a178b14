"""The table of the choices of decoder-only models: norms without a mean, gates, shared heads."""

from attentest_spec.choices.choice import entry

_NOT_NAMED = "not in the paper, which has layer normalisation"

DECODER_ONLY = (
    entry(
        "key_heads",
        "Do keys and values have as many heads as queries?",
        ("as-queries", "every query head has a key and value head of its own"),
        ("fewer", "query head h uses key and value head h // (H / G), of G"),
        paper="as-queries",
        clause="multi_head_attention.shared-key-heads",
        source="section 3.2.2; Ainslie et al. 2023, section 2.2",
        why="A smaller cache; with groups that are dealt out in turn a checkpoint loads, and all "
        "heads but the first and last read the keys of others.",
    ),
    entry(
        "attention_causality",
        "Does multi-head attention hide later keys by itself?",
        ("by-mask", "it hides what its mask hides"),
        ("built-in", "it hides later keys as well, with a mask or without"),
        paper="by-mask",
        clause="multi_head_attention.causality",
        source="section 3.2.3 has a mask in the decoder alone",
        why="Without a mask the one reads the future, and the other cannot be an encoder.",
    ),
    entry(
        "feed_forward_gate",
        "Is the hidden layer multiplied by another map of the input?",
        ("none", "act(x W1 + b1) W2 + b2"),
        ("gated", "(act(x W_g + b_g) * (x W1 + b1)) W2 + b2: the activation is on the gate"),
        paper="none",
        clause="feed_forward.gate",
        source="section 3.3, equation 2; Shazeer 2020, section 2",
        why="Three matrices in place of two; with gate and value exchanged a checkpoint loads, and "
        "the output is another one.",
    ),
    entry(
        "rms_epsilon_place",
        "Where does the RMS norm add its epsilon?",
        ("inside-root", "x / sqrt(mean of squares + epsilon)"),
        ("added-to-rms", "x / (root of the mean of squares + epsilon)"),
        ("floor-of-length", "x sqrt(d) / max(length of x, epsilon)"),
        ("floor-of-rms", "x / max(root of the mean of squares, epsilon)"),
        paper=None,
        clause="rms_norm.epsilon-place",
        source=f"{_NOT_NAMED}; Zhang and Sennrich 2019, equation 4, has none",
        why="Equal for large rows; rows as small as epsilon differ.",
    ),
    entry(
        "rms_epsilon",
        "How large is the epsilon of the RMS norm?",
        paper=None,
        clause="rms_norm.epsilon",
        source=f"{_NOT_NAMED}; Zhang and Sennrich 2019, equation 4, has none",
        why="Published models use 1e-5, 1e-6 and 1e-8; small activations differ.",
        number="a number of at least 0",
        default=1e-6,
    ),
    entry(
        "rms_weight",
        "What is the normalised row multiplied by?",
        ("weight", "by the weight, which is initialised to 1"),
        ("one-plus-weight", "by 1 + the weight, which is initialised to 0"),
        ("none", "by nothing: there is no weight"),
        paper=None,
        clause="rms_norm.weight",
        source=f"{_NOT_NAMED}; Zhang and Sennrich 2019, equation 4, has a weight",
        why="A converted weight that is off by 1 scales every column by another number; decay "
        "pulls the one towards 0 and the other towards 1.",
    ),
    entry(
        "rms_bias",
        "Does the RMS norm have a bias?",
        ("none", "the weighted row as it is"),
        ("present", "the weighted row plus a bias"),
        paper=None,
        clause="rms_norm.bias",
        source=f"{_NOT_NAMED}",
        why="Few models have one; a checkpoint with one has no place for it elsewhere.",
    ),
    entry(
        "rms_arithmetic",
        "Is the RMS norm computed in single precision whatever the precision of the model?",
        ("as-computed", "in the precision of the model, or in a finer one"),
        ("float32", "in float32, also where the model computes in float64"),
        paper=None,
        clause="rms_norm.arithmetic",
        source="not in the paper: its formulas have no rounding",
        why="Half precision gains from it; a float64 model keeps seven digits.",
    ),
    entry(
        "rms_cast",
        "Is a row of half precision rounded back before the weight multiplies it, or after?",
        ("unspecified", "no promise"),
        ("before-weight", "normalised in float32, rounded, then weighted and rounded again"),
        ("after-weight", "normalised and weighted in float32, rounded once"),
        paper=None,
        clause="rms_norm.cast-order",
        source="not in the paper: its formulas have no rounding",
        why="Equal in float32 and different in the last digit of half precision, in every layer.",
    ),
)
"""The choices of the parts that decoder-only models are made of."""
