"""The table of the choices inside attention: positions, norms, scores and what is visible."""

from attentest_spec.choices.choice import entry

ATTENTION = (
    entry(
        "attention_rotary",
        "Are queries and keys turned by their positions inside multi-head attention?",
        ("none", "they are as they were projected"),
        ("query-and-key", "every head of queries and of keys is turned; values are not"),
        paper="none",
        clause="multi_head_attention.rotary",
        source="section 3.5 adds positions to the embeddings; Su et al. 2021, section 3.2.2",
        why="Without positions attention cannot tell the order; turned twice, or with the values, "
        "it still trains.",
    ),
    entry(
        "query_alignment",
        "Which tokens are the queries where their number is not that of the keys?",
        ("equal-numbers", "there are as many queries as keys wherever their order counts"),
        ("start", "query i is the token of key i"),
        ("end", "the last query is the token of the last key"),
        paper=None,
        clause="multi_head_attention.query-alignment",
        source="not in the paper, where self-attention has as many queries as keys",
        why="A step with a cache has one query and many keys: aligned at the start it sees the "
        "first key alone.",
    ),
    entry(
        "attention_window",
        "How far may the keys be from a query that attention sees?",
        ("none", "as far as the mask allows"),
        ("with-query", "W keys up to the query, its own among them: less than W away"),
        ("beside-query", "W keys besides the query's own: at most W away"),
        paper="none",
        clause="multi_head_attention.window",
        source="not in the paper; Beltagy et al. 2020, section 3.1; Jiang et al. 2023, section 2",
        why="One key more or less is equal up to the length of the window; without a window only "
        "long texts differ.",
    ),
    entry(
        "query_key_norm",
        "Are queries and keys normalised after their projection?",
        ("none", "they are as they were projected"),
        ("per-head", "an RMS norm over the columns of each head, one weight for all heads"),
        ("whole-projection", "an RMS norm over the columns of all heads together"),
        ("unit-length", "every head of each token is divided by its length, without a weight"),
        paper="none",
        clause="multi_head_attention.query-key-norm",
        source="not in the paper; Henry et al. 2020, section 2; Dehghani et al. 2023, section 2",
        why="It bounds the scores; a norm over all heads in place of each loses accuracy silently.",
    ),
    entry(
        "query_key_norm_place",
        "Where rotary positions turn them too: is it before or after that they are normalised?",
        ("before-rotation", "normalised, then turned"),
        ("after-rotation", "turned, then normalised"),
        paper=None,
        clause="multi_head_attention.query-key-norm-place",
        source="not in the paper",
        why="Equal while all weights of the norm are equal, as at the start of training; trained "
        "weights tell the two apart.",
    ),
    entry(
        "score_scale",
        "What are the products of queries and keys multiplied by?",
        ("inverse-sqrt-e", "1/sqrt(E), E the width of a head"),
        paper="inverse-sqrt-e",
        clause="attention.score-scale",
        source="section 3.2.1, equation 1",
        why="Another constant makes all weights steeper or flatter; a checkpoint needs its own.",
        number="a number above 0, the factor itself",
    ),
    entry(
        "score_cap",
        "Are scores bounded softly before they are masked?",
        ("none", "scores as they are"),
        paper="none",
        clause="attention.score-cap",
        source="not in the paper; Gemma Team 2024, section 2",
        why="Small scores hardly change; large ones, of trained models, do.",
        number="a number c above 0: c tanh(score / c)",
    ),
    entry(
        "attention_sink",
        "May a query of multi-head attention give weight to nothing?",
        ("none", "the weights of every query sum to 1"),
        ("per-head", "each head has one trained score more, b, and no key and no value for it"),
        paper="none",
        clause="multi_head_attention.attention-sink",
        source="not in the paper; OpenAI 2025 (arXiv 2508.10925), section 2.2; Xiao et al. 2024, "
        "section 3.2, for a term without a parameter",
        why="Without the term a trained head gives all of its weight to keys that it would not "
        "have chosen.",
    ),
    entry(
        "relative_bias",
        "What is added to the scores by the distance of query and key?",
        ("none", "nothing"),
        ("alibi", "-m |i - j|, with the list of slopes m that the authors published"),
        ("alibi-geometric", "-m |i - j|, m = 2^(-8h/H) for any number of heads H"),
        ("buckets", "a trained number for each head and bucket; earlier and later keys differ"),
        ("buckets-of-the-past", "the same, with all buckets for earlier keys"),
        paper="none",
        clause="multi_head_attention.relative-bias",
        source="not in the paper; Press et al. 2022, section 3; Raffel et al. 2020, section 2.1",
        why="The two lists of slopes are equal for 8 heads and not for 12; buckets of both "
        "directions and of one have the same shape.",
    ),
)
"""The choices inside attention that later models have made."""
