"""Feed-forward networks among the numbers of a call: the activation, and the gate."""

from collections.abc import Iterator
from functools import partial

from attentest.targets.adapt.parameters.words import beyond, feed_forward_role
from attentest.targets.language_models.numbers.findings import Found, State
from attentest.targets.language_models.numbers.linears import Linear, linears
from attentest.targets.language_models.numbers.mistakes import EXCHANGED
from attentest.targets.language_models.numbers.norms import Options
from attentest.targets.language_models.numbers.places import View
from attentest.targets.language_models.numbers.reader import Reader
from attentest_spec import CHOICES
from attentest_spec.feed_forward import activate
from attentest_spec.setting import Floats


def networks(
    reader: Reader, found: Found, path: str, h: Floats, step: int, *, before: int = 0
) -> Iterator[State]:
    """Yield what follows if h (B, T, D) passes through the network at the canonical `path`.

    Its first map is looked for `before` the other steps, where nothing else says that h is its
    input.
    """
    reader.looks_for(step - before, f"the inner layer of {path}")
    for width in reader.widths:
        inner = reader.once(f"inner {width}", h, {}, partial(linears, reader, h, width))
        for options, maps, hidden in _hidden(reader, found, inner):
            reader.looks_for(step + 1, f"the outer layer of {path}")
            for outer in linears(reader, hidden, reader.sizes.d_model, late=True):
                every = {**maps, "outer": outer}
                biased = {one.bias is not None for one in every.values()}
                if len(biased) > 1:
                    continue
                bias = "present" if biased == {True} else "none"
                held: dict[str, View] = {}
                for name, one in every.items():
                    held |= one.views(f"{path}.{name}")
                if found.uses(held.values()):
                    continue
                after = found.but({**options, "feed_forward_bias": bias}, held)
                if after:
                    yield State(after, outer.output)
    for mixture in reader.mixtures:
        mixed = mixture.of(h)
        if mixed is not None:
            reader.looks_for(step + 1, f"what follows {mixture.name} in {path}")
            yield State(found, mixed)


def _hidden(
    reader: Reader, found: Found, inner: list[Linear]
) -> Iterator[tuple[Options, dict[str, Linear], Floats]]:
    """Yield the options and maps with which the inner layer is computed; gates come first.

    Where the names of both maps say the other way round, the mistake is remembered.
    """
    is_known = reader.mistaken is not None and reader.mistaken.exchanged
    names = [one.name for one in CHOICES["activation"].options]
    for name in names:
        if found.choices.get("activation", name) != name:
            continue
        active = [(one, activate(name, one.output)) for one in inner]
        active = [(one, values) for one, values in active if reader.holds(values)]
        for gate, values in active:
            for one in inner:
                product = values * one.output
                if one is gate or not reader.trace.holds(product, known=False):
                    continue
                options: Options = {"activation": name, "feed_forward_gate": "gated"}
                named = {"gate": gate, "inner": one}
                if _says_otherwise(named):
                    reader.suspected = reader.suspected or EXCHANGED
                    if not is_known:
                        continue
                    named = {"gate": one, "inner": gate}
                reader.holds(product)
                yield options, named, product
        for one, values in active:
            yield {"activation": name, "feed_forward_gate": "none"}, {"inner": one}, values


def _says_otherwise(maps: dict[str, Linear]) -> bool:
    """Say whether the names of a gate and of the map that it multiplies are those of each other."""
    names = beyond([maps[role].weight.name for role in ("gate", "inner")])
    return [feed_forward_role(one) for one in names] == ["inner", "gate"]
