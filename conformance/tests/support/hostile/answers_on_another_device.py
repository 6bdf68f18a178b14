import torch

from attentest_spec.torch import of_function


def elsewhere(query, key, value, mask):
    return torch.softmax(query @ key.mT, -1).to("meta") @ value.to("meta")


backend = of_function(elsewhere, "attention")
