import torch

from attentest_spec.torch import of_function


def changes(query, key, value, mask):
    torch.set_num_threads(3)
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ value


backend = of_function(changes, "attention")
