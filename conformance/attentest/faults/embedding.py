"""Faults of the chapter `embedding`: each function overrides the seam that it is named after."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


def _table(module: Node) -> Tensor:
    """Return the table of an embedding: its one parameter, whatever its name."""
    return next(module.parameters())


@fault(
    "embedding.ids-shifted",
    clause="embedding.lookup",
    wrong="Ids are shifted by one, from 1 on where they begin at 0.",
    effect="Every word has the vector of its neighbour; training from scratch hides it.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.lookup(module, (tokens + 1) % self.vocabulary_of(module))


@fault(
    "embedding.rows-normalised",
    clause="embedding.lookup",
    wrong="Rows are divided by their length.",
    effect="Rare and frequent words get the same size; the length is never trained.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    rows = self.sound.lookup(module, tokens)
    return rows / rows.norm(dim=-1, keepdim=True).clamp(min=1e-12)


@fault(
    "embedding.rows-capped",
    clause="embedding.lookup",
    wrong="Rows longer than 1 are cut to length 1, an option of the library left on.",
    effect="Long rows lose their length, short ones do not.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    rows = self.sound.lookup(module, tokens)
    return rows / rows.norm(dim=-1, keepdim=True).clamp(min=1.0)


@fault(
    "embedding.table-turned",
    clause="embedding.lookup",
    wrong="The table (V, D) is read as if it were stored as (D, V).",
    effect="Every vector is made of numbers of several words.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    table = _table(module)
    turned = table.reshape(table.shape[1], table.shape[0]).t()
    rows: Tensor = turned[tokens]
    return rows


@fault(
    "embedding.pads-zeroed",
    clause="embedding.lookup",
    wrong="The vector of a pad is zero whatever its row holds.",
    effect="A checkpoint whose row is not zero gives another model at every pad.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    rows = self.sound.lookup(module, tokens)
    return rows.masked_fill((tokens == self.sizes.source_pad)[..., None], 0.0)


@fault(
    "embedding.scale-missing",
    clause="embedding.scale",
    origin="B053",
    wrong="The rows are not multiplied by the root of the model width.",
    effect="Positions drown the words.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x


@fault(
    "embedding.scale-divided",
    clause="embedding.scale",
    origin="B053",
    wrong="The rows are divided by the root of the model width, not multiplied.",
    effect="Positions drown the words, the more so the wider the model.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x / d_model**0.5


@fault(
    "embedding.scale-without-root",
    clause="embedding.scale",
    wrong="The rows are multiplied by the model width, not by its root.",
    effect="Words drown the positions.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x * d_model


@fault(
    "embedding.scale-twice",
    clause="embedding.scale",
    wrong="The factor is in the rows from birth and applied again by every call.",
    effect="A checkpoint from elsewhere is right, and one written here is not.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return self.sound.scale_embedding(self.sound.scale_embedding(x, d_model), d_model)


@fault(
    "embedding.scale-undeclared",
    clause="embedding.scale",
    wrong="The rows are multiplied by the root of the model width where the plain row is declared.",
    effect="The declaration is wrong: a comparison by it misleads.",
    choices={"embedding_scale": "none"},
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x * d_model**0.5


@fault(
    "embedding.scale-by-heads",
    clause="embedding.scale",
    wrong="The factor is the root of the head width.",
    effect="Words are too small by the root of the number of heads; one head hides it.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x * float((d_model // self.sizes.heads) ** 0.5)


@fault(
    "embedding.output-squeezed",
    clause="embedding.shapes",
    origin="B036",
    wrong="The output is squeezed without naming an axis.",
    effect="One sample or one token drops an axis, often at inference alone.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.lookup(module, tokens).squeeze()


@fault(
    "embedding.factor-double-precision",
    clause="embedding.shapes",
    wrong="The factor is a float64 array and widens all that it is multiplied with.",
    effect="A float32 model computes in float64 from its first step, or raises in its second.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x * torch.full((d_model,), d_model**0.5, dtype=torch.float64, device=x.device)


@fault(
    "embedding.output-single-precision",
    clause="embedding.shapes",
    wrong="The output is returned in float32 whatever the table is.",
    effect="What follows computes in another precision, or raises for mixed ones.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return self.sound.scale_embedding(x, d_model).float()


@fault(
    "embedding.last-row-missing",
    clause="embedding.every-id-served",
    wrong="The table is one row short: pads were not counted.",
    effect="The rarest word raises, and no other.",
    kind="loud",
)
def make_embedding(self: Seams, vocabulary: int) -> Node:
    built = self.sound.make_embedding(vocabulary - 1)
    built.how = self
    return built


@fault(
    "embedding.last-id-clipped",
    clause="embedding.every-id-served",
    wrong="Ids are clipped to one below the last.",
    effect="The rarest word becomes the one before it.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.lookup(module, tokens.clamp(max=self.vocabulary_of(module) - 2))


@fault(
    "embedding.vocabulary-of-target",
    clause="embedding.every-id-served",
    wrong="The source table has as many rows as the target vocabulary has words.",
    effect="Vocabularies of one size hide it; else the rarest words raise or rows are never used.",
    choices={"tying": "none"},
    kind="loud",
)
def make_embedding(self: Seams, vocabulary: int) -> Node:
    built = self.sound.make_embedding(self.sizes.target_vocabulary)
    built.how = self
    return built


@fault(
    "embedding.ids-clipped",
    clause="embedding.out-of-range-refused",
    wrong="Ids beyond the vocabulary are clipped to its last.",
    effect="A tokenizer of another vocabulary goes unnoticed.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.embedding(module, tokens.clamp(max=self.vocabulary_of(module) - 1))


@fault(
    "embedding.ids-wrapped",
    clause="embedding.out-of-range-refused",
    wrong="Ids beyond the vocabulary start again from its first.",
    effect="A tokenizer of another vocabulary goes unnoticed.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    vocabulary = self.vocabulary_of(module)
    return self.sound.embedding(
        module, torch.where(tokens >= vocabulary, tokens % vocabulary, tokens)
    )


@fault(
    "embedding.foreign-ids-zero",
    clause="embedding.out-of-range-refused",
    wrong="Ids beyond the vocabulary give zeros, as a product with one-hot rows would.",
    effect="A word that is not in the vocabulary says nothing, and nobody is told.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    foreign = tokens >= self.vocabulary_of(module)
    rows = self.sound.embedding(module, tokens.masked_fill(foreign, 0))
    return rows.masked_fill(foreign[..., None], 0.0)


@fault(
    "embedding.negative-ids-from-the-end",
    clause="embedding.negative-id-refused",
    wrong="Negative ids count from the end of the table, as indexing does.",
    effect="A marker such as -1 becomes the rarest word.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    vocabulary = self.vocabulary_of(module)
    return self.sound.embedding(module, torch.where(tokens < 0, tokens % vocabulary, tokens))


@fault(
    "embedding.negative-ids-clipped",
    clause="embedding.negative-id-refused",
    wrong="Negative ids are clipped to 0.",
    effect="A marker such as -100 becomes the first word, often the pad.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.embedding(module, tokens.clamp(min=0))


@fault(
    "embedding.positions-included",
    clause="embedding.no-positions",
    wrong="Positions are added here, and once more by the positional encoding.",
    effect="Positions count twice.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    rows = self.sound.embedding(module, tokens)
    return rows + self.position_table(rows.shape[1], rows.shape[2], rows.device).to(rows)


@fault(
    "embedding.scaled-by-length",
    clause="embedding.no-positions",
    wrong="The factor is the root of the number of tokens.",
    effect="The longer the sentence, the louder its words.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.lookup(module, tokens) * float(tokens.shape[-1] ** 0.5)


@fault(
    "embedding.neighbours-mixed",
    clause="embedding.no-positions",
    wrong="A tenth of each word's vector is that of the word before.",
    effect="The same word differs by what stands before it.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    rows = self.sound.lookup(module, tokens)
    before = torch.cat([rows[:, :1], rows[:, :-1]], dim=1)
    return 0.9 * rows + 0.1 * before


@fault(
    "embedding.table-detached",
    clause="embedding.gradient-only-to-used-rows",
    wrong="The rows are looked up outside of the graph.",
    effect="The table stays as it was born.",
    kind="gradient",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.lookup(module, tokens).detach()


@fault(
    "embedding.gradient-to-neighbour",
    clause="embedding.gradient-only-to-used-rows",
    wrong="The hand-written backward pass adds the gradient to the row below.",
    effect="Values are right, and every word trains its neighbour.",
    kind="gradient",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    beside = self.sound.lookup(module, (tokens + 1) % self.vocabulary_of(module))
    return self.sound.lookup(module, tokens).detach() + beside - beside.detach()


@fault(
    "embedding.decay-in-gradient",
    clause="embedding.gradient-only-to-used-rows",
    wrong="Every row gets a share of the gradient: a mean of the table is subtracted and added.",
    effect="Values are right, and words that do not occur drift.",
    kind="gradient",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    mean = _table(module).mean(dim=0)
    return self.sound.lookup(module, tokens) + 0.1 * (mean - mean.detach())


@fault(
    "embedding.gradient-by-frequency",
    clause="embedding.repeated-tokens",
    wrong="The gradient of a row is divided by how often its word occurs, an option left on.",
    effect="Frequent words train too slowly.",
    kind="gradient",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    rows: Tensor = nn.functional.embedding(tokens, _table(module), scale_grad_by_freq=True)
    return rows


@fault(
    "embedding.gradient-of-last-occurrence",
    clause="embedding.repeated-tokens",
    wrong="The hand-written backward pass assigns gradients to rows where it should add them.",
    effect="Of a word that occurs twice, one occurrence counts.",
    kind="gradient",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    flat = tokens.flatten()
    place = torch.arange(flat.numel(), device=flat.device)
    later = (flat[None, :] == flat[:, None]) & (place[None, :] > place[:, None])
    rows = self.sound.lookup(module, tokens)
    last = ~later.any(dim=1).reshape(tokens.shape)[..., None]
    return torch.where(last, rows, rows.detach())


@fault(
    "embedding.factor-outside-of-graph",
    clause="embedding.repeated-tokens",
    wrong="The factor is applied to the numbers and not to their gradient.",
    effect="Values are right, and the table trains too slowly by the root of the width.",
    kind="gradient",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x + (self.sound.scale_embedding(x, d_model) - x).detach()


@fault(
    "embedding.frozen-row-initialised-over",
    clause="embedding.frozen-row-is-zero",
    origin="B054",
    wrong="The pad's row gets no gradient, and a loop over all weights has filled it.",
    effect="A random vector stands at every pad for ever.",
    kind="gradient",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    pad = self.sizes.source_pad
    rows: Tensor = nn.functional.embedding(tokens, _table(module), padding_idx=pad)
    return rows


@fault(
    "embedding.frozen-row-of-ones",
    clause="embedding.frozen-row-is-zero",
    wrong="The pad's row is filled with ones and kept from training.",
    effect="Every pad says the same loud thing for ever.",
    kind="gradient",
)
def make_embedding(self: Seams, vocabulary: int) -> Node:
    built = self.sound.make_embedding(vocabulary)
    built.how = self
    pad = self.sizes.source_pad
    with torch.no_grad():
        _table(built)[pad] = 1.0
    frozen = torch.arange(vocabulary)[:, None] == pad
    _table(built).register_hook(  # type: ignore[no-untyped-call]  # it has no types in torch
        lambda pulled: pulled.masked_fill(frozen.to(pulled.device), 0.0)
    )
    return built


@fault(
    "embedding.ids-as-bytes",
    clause="embedding.lookup",
    wrong="Ids are taken modulo 256.",
    effect="In a real vocabulary most words share their vector with others.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.lookup(module, tokens % 256)
