"""The call of a part of a module is a sample of the component that it is taken for."""

import numpy as np

from attentest.targets.adapt.parameters.behaviour import Fired
from attentest.targets.adapt.parameters.trials.samples import part_samples

X, MEMORY, MASK = np.ones((2, 3, 20)), np.zeros((2, 4, 20)), np.ones((2, 3, 4))


def test_mask_of_attention_is_no_key() -> None:
    fired = Fired("attention", (X, MEMORY, MEMORY, MASK), X)
    first, _ = part_samples("multi_head_attention", fired)
    query, key, value, mask = first.inputs
    assert (query is X, key is MEMORY, value is MEMORY, mask) == (True, True, True, None)


def test_part_of_another_width_is_no_sample_of_attention() -> None:
    assert not part_samples("multi_head_attention", Fired("attention", (X,), MASK))
