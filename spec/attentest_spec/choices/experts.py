"""The table of the choices of a mixture of experts: scores, weights, biases and shared experts."""

from attentest_spec.choices.choice import entry

_NOT_THERE = "not in the paper, which has one feed-forward network per layer"

EXPERTS = (
    entry(
        "router_scores",
        "Which function of the router's logits are the scores of the experts?",
        ("softmax", "the softmax over all experts"),
        ("sigmoid", "the sigmoid of every logit by itself"),
        paper=None,
        clause="mixture_of_experts.scores",
        source=f"{_NOT_THERE}; Jiang et al. 2024, section 2.1; DeepSeek-AI 2024, equation 15",
        why="Both choose the same experts; the weights differ, and those of a softmax depend on "
        "the logits of all experts.",
    ),
    entry(
        "routing_weights",
        "Are the scores of the chosen experts divided by their sum?",
        ("renormalised", "yes: the weights of a token sum to 1"),
        ("as-scored", "no: the weights are the scores themselves"),
        paper=None,
        clause="mixture_of_experts.weights",
        source=f"{_NOT_THERE}; Jiang et al. 2024, section 2.1, has the first; Fedus et al. 2021, "
        "equation 2, the second",
        why="A softmax over the chosen logits alone is the first; in a model of the second it "
        "makes every layer too large, text begins well and drifts.",
    ),
    entry(
        "router_bias",
        "Does the router have a bias, and what does it act on?",
        ("none", "the logits are x W"),
        ("in-scores", "the logits are x W + b"),
        ("in-choice-alone", "it is added to the scores for the choice, and not to the weights"),
        paper=None,
        clause="mixture_of_experts.router-bias",
        source=f"{_NOT_THERE}; DeepSeek-AI 2024, section 2.1.2, has the third",
        why="A bias that balances the experts is to change which are chosen; in the weights it "
        "changes what they say.",
    ),
    entry(
        "shared_expert",
        "Is there an expert that takes every token?",
        ("none", "the chosen experts alone"),
        ("added", "the shared expert's output is added"),
        ("gated", "it is multiplied by sigmoid(x w) and added"),
        paper=None,
        clause="mixture_of_experts.shared-expert",
        source=f"{_NOT_THERE}; Dai et al. 2024, section 3.2, has the second",
        why="Left out, a model loads, and every token loses what all have in common.",
    ),
    entry(
        "routing_scale",
        "What is the sum of the chosen experts multiplied by?",
        ("none", "by nothing"),
        paper=None,
        clause="mixture_of_experts.scale",
        source=f"{_NOT_THERE}; a setting of published models, such as DeepSeek-V3",
        why="The shared expert is not multiplied: without the factor, the chosen ones count too "
        "little beside it.",
        number="a number above 0, the factor of the weights",
    ),
    entry(
        "routing_arithmetic",
        "Are scores and weights computed in single precision whatever the precision of the model?",
        ("as-computed", "in the precision of the model, or in a finer one"),
        ("float32", "in float32, also where the model computes in float64"),
        paper=None,
        clause="mixture_of_experts.arithmetic",
        source="not in the paper: its formulas have no rounding",
        why="Half precision gains from it; a float64 model keeps seven digits.",
    ),
)
"""The choices of the chapter `mixture_of_experts`."""
