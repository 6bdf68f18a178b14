"""The bias of scores by the distance of query and key, from the formulas."""

from typing import Annotated

import numpy as np

from attentest_spec.order import query_places
from attentest_spec.setting import Array, Floats, Setting


def relative_bias(given: Setting, queries: int, keys: int) -> Annotated[Floats, "H Q K"] | None:
    """Return what is added to the scores of all heads, of the shape (H, Q, K), or None.

    Choice: `relative_bias`; where it has buckets, the parameter `relative_bias.weight` (N, H) has
    a row for each of the `bias_buckets`. Sources: Press et al. 2022, section 3; Raffel et al. 2020,
    section 2.1, whose buckets are published as code.
    """
    kind = given.choices.relative_bias
    if kind == "none":
        return None
    ahead = np.arange(keys)[None, :] - query_places(given.choices, queries, keys)[:, None]
    if kind.startswith("alibi"):
        found: Floats = -slopes(given.sizes.heads, kind)[:, None, None] * np.abs(ahead)
        return found
    sizes, both = given.sizes, kind == "buckets"
    rows = given["relative_bias.weight"][
        buckets(ahead, sizes.bias_buckets, sizes.bias_distance, both=both)
    ]
    return np.moveaxis(rows, -1, 0)


def slopes(heads: int, kind: str = "alibi") -> Annotated[Floats, "H"]:
    """Return the slopes (H) of all heads.

    The authors' list for a number of heads that is no power of two has the slopes of the next
    lower power n, then every second one of those of 2n.
    """
    if kind == "alibi-geometric":
        return _geometric(heads)
    whole = 1 << (heads.bit_length() - 1)
    return np.concatenate([_geometric(whole), _geometric(2 * whole)[::2][: heads - whole]])


def _geometric(heads: int) -> Annotated[Floats, "H"]:
    found: Floats = 2.0 ** (-8.0 * np.arange(1, heads + 1) / heads)
    return found


def buckets(
    ahead: Annotated[Array, "Q K"], count: int, farthest: int, *, both: bool
) -> Annotated[Array, "Q K"]:
    """Return the bucket (Q, K) of every distance; `ahead` is positive for later keys.

    Of the buckets of one direction, half are for one distance each; the others grow by a constant
    factor up to the distance `farthest`, from which on there is one. Later keys have the second
    half of all buckets where there are those of both directions, and else the bucket 0.
    """
    own = count // 2 if both else count
    distance = np.abs(ahead) if both else np.maximum(-ahead, 0)
    exact = own // 2
    ratio = np.log(np.maximum(distance, 1) / exact) / np.log(farthest / exact)
    # A distance that is a power of the factor begins a bucket, whatever the rounding of logarithms.
    far = exact + np.floor(ratio * (own - exact) + 1e-9).astype(np.int64)
    found = np.where(distance < exact, distance, np.minimum(far, own - 1))
    return found + np.where(both & (ahead > 0), own, 0)
