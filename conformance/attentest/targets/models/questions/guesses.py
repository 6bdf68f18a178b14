"""Arguments that nothing says, and that a trial takes for a greatest length: that has no effect."""

import re
from dataclasses import replace

import torch

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.reading import Unclear
from attentest.targets.models.inferring import Inferred, probe_of
from attentest.targets.models.size_names import size_by_words, sizes_named
from attentest.targets.models.trials import Building

_UNNAMED = (
    "{0} could be built with any number as {1}, and its output depends on it: nothing says what it "
    "is. Say so with --give {1}=VALUE, or with --argument SIZE={1} (in Python: given={{'{1}': "
    "VALUE}})."
)


def demand_no_effect(built: Building, inferred: Inferred, name: str) -> None:
    """Raise Unclear where an argument got a greatest length, as no other size, and it changes rows.

    A name that says a length is what is meant: a table of another length may differ.
    """
    sizes = DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
    for own in re.findall(r"(\w+)=sizes\.max_length\b", built.expression):
        words = squashed(own)
        if "max_length" in (*sizes_named(words, [words], ""), size_by_words(words, "")):
            continue
        given = re.sub(
            rf"\b{own}=sizes\.max_length\b", f"{own}=3 + sizes.max_length", built.expression
        )
        probe, other = probe_of(built, sizes), probe_of(replace(built, expression=given), sizes)
        held = dict(other.model.state_dict())
        with torch.no_grad():
            for path, one in probe.model.state_dict().items():
                if path in held and held[path].ndim == one.ndim:  # a table may have more rows
                    pairs = zip(one.shape, held[path].shape, strict=True)
                    both = [slice(min(pair)) for pair in pairs]
                    held[path][tuple(both)] = one[tuple(both)]
        call = inferred.call.compiled()
        before, after = (one.called(call, *probe.tokens) for one in (probe, other))
        if not (isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor)):
            continue
        if before.shape != after.shape or not torch.equal(before, after):
            raise Unclear(_UNNAMED.format(name, own))
