"""Sources of the functions that connect a cache: its start, its rows, and what a step is given."""

from attentest.targets.language_models.calling import Call


def required_mask(call: Call) -> list[str]:
    """Return the lines that give a step the mask that no call may leave out: it hides nothing."""
    if not call.required:
        return []
    return [
        "    seen = (len(tokens), before + tokens.shape[1])",
        "    mask_of_all = torch.ones(seen, dtype=torch.bool, device=tokens.device)",
        f'    given["{call.required}"] = {call.held(call.required, call.required_form)}',
    ]


def given_input(name: str, own: str, form: str) -> list[str]:
    """Return the lines that give an input to the argument `own`, or refuse it for ""."""
    if own:
        return [f"    if {name} is not None:", f'        given["{own}"] = {form}']
    return [
        f"    if {name} is not None:",
        f'        raise Unsupported("its steps take no {name}")',
    ]


START = '''\
def build_cached(sizes):
    """Return the model at `sizes`, which its caches are made for."""
    model = build(sizes)
    model.sizes_of_caches = sizes
    return model


def start(model, rows):
    """Return an empty cache, and the number of tokens in it."""
    sizes = model.sizes_of_caches
    return EMPTY, 0
'''
JOINED_WORDS = "which is that of the new tokens alone, and is joined to the one before"
PLACES_GIVEN = (
    "assumed that every step with a cache is given the positions of its tokens: without them they "
    "do not follow on those in the cache, and if they are meant to, this is a mistake"
)
NEW_ALONE = (
    "assumed that its caller joins the keys and values that it returns, which are those of new "
    "tokens alone, to those before: if it is to return all of them, this is a mistake"
)
JOINED = '''\
def joined(kept, new):
    """Return a cache (.., T, ..) with that of the tokens before it; rows of tensors likewise."""
    if kept is None:
        return new
    if isinstance(new, torch.Tensor):
        return torch.cat([kept, new], AXIS)
    return type(new)(joined(*pair) for pair in zip(kept, new, strict=True))
'''
ROWS = '''\
def picked(kept, rows):
    """Return the rows of all tensors of a cache."""
    if isinstance(kept, torch.Tensor):
        return kept[rows]
    if isinstance(kept, dict):
        return {name: picked(one, rows) for name, one in kept.items()}
    if isinstance(kept, (tuple, list)):
        return type(kept)(picked(one, rows) for one in kept)
    return kept


def reorder(model, past, rows):
    """Return the cache with the rows (B,) in another order."""
    return picked(past[0], rows), past[1]
'''
METHOD = '''\
def reorder(model, past, rows):
    """Return the cache after its rows (B,) were put in another order."""
    kept, before = past
    found = kept.{0}(rows)
    return (kept if found is None else found), before
'''
