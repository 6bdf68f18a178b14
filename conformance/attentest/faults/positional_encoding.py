"""Faults of the chapter `positional_encoding`: each function overrides the seam of its name."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams

Device = torch.device | None


# The formula


@fault(
    "positional_encoding.exponent-doubled",
    clause="positional_encoding.formula",
    origin="systems.md B",
    wrong="The exponent is 4i/d: columns are stepped through by two, and doubled once more.",
    effect="Half of the frequencies are wasted, and no checkpoint of the paper's table fits.",
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device) * 2


@fault(
    "positional_encoding.exponent-halved",
    clause="positional_encoding.formula",
    wrong="The exponent is i/d, the number of the pair without its factor of two.",
    effect="The slowest wave is a hundred times too fast.",
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device) / 2


@fault(
    "positional_encoding.exponent-to-the-end",
    clause="positional_encoding.formula",
    wrong="The exponents reach 1 at the last pair, divided by d - 2 in place of d.",
    effect="Close to the paper's table in wide models, and another one.",
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device) * d_model / max(d_model - 2, 1)


@fault(
    "positional_encoding.exponent-of-a-fixed-width",
    clause="positional_encoding.formula",
    origin="systems.md C",
    wrong="The exponents are those of a width of four, whatever the model's width is.",
    effect="The columns beyond the fourth hardly move.",
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device) * d_model / 4


@fault(
    "positional_encoding.exponent-in-whole-numbers",
    clause="positional_encoding.formula",
    wrong="2i is divided by d in whole numbers.",
    effect="Every pair of columns has the same frequency.",
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device).floor()


@fault(
    "positional_encoding.base-thousand",
    clause="positional_encoding.formula",
    origin="B039",
    wrong="The base is 1000.",
    effect="Slow waves are too fast, and long sentences repeat themselves.",
)
def frequencies(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.frequencies(d_model, device) ** 0.75


@fault(
    "positional_encoding.precedence",
    clause="positional_encoding.formula",
    origin="B039",
    wrong="-log(10000) / d // 2 floors to -1 before it is multiplied.",
    effect="All columns but the first few are constant.",
)
def frequencies(self: Seams, d_model: int, device: Device) -> Tensor:
    return torch.exp(-self.sound.exponents(d_model, device) * d_model)


@fault(
    "positional_encoding.base-and-exponent-swapped",
    clause="positional_encoding.formula",
    origin="B039",
    wrong="The exponent is raised to the power of 1/10000.",
    effect="The first pair stands still, and all others turn at one speed.",
)
def frequencies(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device) ** 1e-4


@fault(
    "positional_encoding.halves-for-interleaved",
    clause="positional_encoding.formula",
    wrong="Sines fill the first half of the columns and cosines the second.",
    effect="The columns stand in another order, and no checkpoint fits.",
)
def arrange(self: Seams, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    return torch.cat((sines, cosines[:, : d_model // 2]), dim=-1)


@fault(
    "positional_encoding.logarithm-rounded",
    clause="positional_encoding.far-positions",
    wrong="The logarithm of 10000 is written with two decimals.",
    effect="Frequencies are slightly off, which shows far from the beginning.",
)
def frequencies(self: Seams, d_model: int, device: Device) -> Tensor:
    return torch.exp(self.sound.exponents(d_model, device) * -9.21)


@fault(
    "positional_encoding.positions-in-bytes",
    clause="positional_encoding.far-positions",
    wrong="Positions are counted in bytes.",
    effect="The 256th position is the first again.",
)
def positions(self: Seams, length: int, device: Device) -> Tensor:
    return self.sound.positions(length, device) % 256


@fault(
    "positional_encoding.frequencies-in-single",
    clause="positional_encoding.far-positions",
    wrong="Frequencies are rounded to float32 before positions multiply them.",
    effect="In float64 far positions are wrong from the fourth digit on.",
)
def frequencies(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.frequencies(d_model, device).float().double()


@fault(
    "positional_encoding.positions-from-one",
    clause="positional_encoding.first-row",
    wrong="Positions are counted from 1.",
    effect="Every row is the next one's, and no checkpoint fits.",
)
def positions(self: Seams, length: int, device: Device) -> Tensor:
    return self.sound.positions(length, device) + 1


@fault(
    "positional_encoding.sines-and-cosines-swapped",
    clause="positional_encoding.first-row",
    wrong="Cosines stand where the sines belong.",
    effect="Trained alone it works as well; no checkpoint fits.",
)
def arrange(self: Seams, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    return self.sound.arrange(cosines, sines, d_model)


@fault(
    "positional_encoding.first-row-zero",
    clause="positional_encoding.first-row",
    wrong="The first row is set to zero, as if it were a padding's.",
    effect="The first word of every sentence is told no position.",
)
def position_table(self: Seams, length: int, d_model: int, device: Device = None) -> Tensor:
    table = self.sound.position_table(length, d_model, device)
    table[0] = 0.0
    return table


@fault(
    "positional_encoding.scaled-by-root-width",
    clause="positional_encoding.bounded",
    wrong="Positions are multiplied by the embedding's factor.",
    effect="Positions drown the words.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows * self.sizes.d_model**0.5)


@fault(
    "positional_encoding.position-itself",
    clause="positional_encoding.bounded",
    wrong="The number of the position is added to its waves.",
    effect="Late positions drown the words.",
)
def position_table(self: Seams, length: int, d_model: int, device: Device = None) -> Tensor:
    table = self.sound.position_table(length, d_model, device)
    return table + self.sound.positions(length, device)[:, None] / 10


@fault(
    "positional_encoding.exponent-by-column",
    clause="positional_encoding.pairs-on-circle",
    origin="B037",
    wrong="The exponent is taken from the column and not from its pair.",
    effect="Frequencies fall twice as fast, and a sine and its cosine have two of them.",
)
def position_table(self: Seams, length: int, d_model: int, device: Device = None) -> Tensor:
    exponents = torch.arange(d_model, dtype=torch.float64, device=device) * 2 / d_model
    angles = self.sound.positions(length, device)[:, None] / 10000.0**exponents
    cosines = angles[:, 1::2].cos()
    return self.sound.arrange(
        angles[:, 0::2].sin(), functional.pad(cosines, (0, d_model % 2)), d_model
    )


@fault(
    "positional_encoding.cosines-missing",
    clause="positional_encoding.pairs-on-circle",
    wrong="Both columns of a pair hold the sine.",
    effect="A position and its mirror image cannot be told apart by a slow wave.",
)
def arrange(self: Seams, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    return self.sound.arrange(sines, sines, d_model)


@fault(
    "positional_encoding.scaled-down",
    clause="positional_encoding.pairs-on-circle",
    wrong="Positions are divided by the root of the width.",
    effect="Words drown the positions.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows / self.sizes.d_model**0.5)


@fault(
    "positional_encoding.angles-slow-down",
    clause="positional_encoding.shift-is-rotation",
    wrong="Angles grow with the root of the position.",
    effect="The same distance is another angle at another place.",
)
def positions(self: Seams, length: int, device: Device) -> Tensor:
    return self.sound.positions(length, device).sqrt()


@fault(
    "positional_encoding.positions-in-triangle",
    clause="positional_encoding.shift-is-rotation",
    wrong="Positions are summed up twice: 0, 1, 3, 6 and so on.",
    effect="The same distance is another angle at another place.",
)
def positions(self: Seams, length: int, device: Device) -> Tensor:
    return self.sound.positions(length, device).cumsum(0)


@fault(
    "positional_encoding.never-added",
    clause="positional_encoding.rows-differ",
    origin="B043",
    wrong="The table is made and never added.",
    effect="A sentence is a bag of words.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return x


@fault(
    "positional_encoding.one-row-for-all",
    clause="positional_encoding.rows-differ",
    origin="B119",
    wrong="Every position is given the row of the first.",
    effect="A sentence is a bag of words.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows[:1])


@fault(
    "positional_encoding.positions-in-pairs",
    clause="positional_encoding.rows-differ",
    wrong="Two neighbours share a position.",
    effect="The order within a pair of words is lost.",
)
def positions(self: Seams, length: int, device: Device) -> Tensor:
    return (self.sound.positions(length, device) / 2).floor()


# How it is added


@fault(
    "positional_encoding.positions-over-length",
    clause="positional_encoding.prefix",
    wrong="Positions are divided by the length of the sentence.",
    effect="Adding a word changes the positions of all others.",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    share = self.sound.positions(length, device) / length
    angles = self.sound.angles(share, self.sound.frequencies(self.sizes.d_model, device))
    return self.sound.arrange(angles.sin(), angles.cos(), self.sizes.d_model)


@fault(
    "positional_encoding.counted-from-the-end",
    clause="positional_encoding.prefix",
    wrong="Positions are counted from the last word.",
    effect="Adding a word changes the positions of all others.",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    return self.sound.position_rows(module, length, device).flip(0)


@fault(
    "positional_encoding.multiplied",
    clause="positional_encoding.added",
    wrong="The input is multiplied by the rows.",
    effect="Words are zeroed where a wave crosses zero.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return x * rows.to(x.dtype)


@fault(
    "positional_encoding.input-scaled",
    clause="positional_encoding.added",
    wrong="The input is multiplied by the embedding's factor here.",
    effect="Applied once more in the embedding, words drown the positions.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x * self.sizes.d_model**0.5, rows)


@fault(
    "positional_encoding.averaged",
    clause="positional_encoding.added",
    wrong="Input and rows are averaged.",
    effect="Words and positions are half as large as they should be.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows) / 2


@fault(
    "positional_encoding.zero-rows-skipped",
    clause="positional_encoding.added",
    origin="B051",
    wrong="A row of zeros counts as padding and is given no position.",
    effect="What is added depends on what is in the sentence.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return torch.where((x != 0).any(-1, keepdim=True), self.sound.add_rows(x, rows), x)


@fault(
    "positional_encoding.indexed-by-batch",
    clause="positional_encoding.indexed-by-position",
    origin="B041",
    wrong="The table is indexed along the batch.",
    effect="All words of a sentence have one position, and each sentence another.",
)
def add_positions(self: Seams, module: Node, x: Tensor) -> Tensor:
    rows = self.sound.position_rows(module, x.shape[0], x.device)
    return x + rows[:, None].to(x.dtype)


@fault(
    "positional_encoding.counted-through-the-batch",
    clause="positional_encoding.indexed-by-position",
    wrong="Positions are counted on from one sentence to the next.",
    effect="The second sentence of a batch begins in the middle.",
)
def add_positions(self: Seams, module: Node, x: Tensor) -> Tensor:
    rows = self.sound.position_rows(module, x.shape[0] * x.shape[1], x.device)
    return x + rows.view(x.shape).to(x.dtype)


@fault(
    "positional_encoding.first-sample-alone",
    clause="positional_encoding.indexed-by-position",
    wrong="Positions are added to the first sentence of a batch alone.",
    effect="All other sentences are bags of words.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return torch.cat((self.sound.add_rows(x[:1], rows), x[1:]))


@fault(
    "positional_encoding.kept-in-double",
    clause="positional_encoding.shapes",
    wrong="The table is float64 and pulls the sum up to its precision.",
    effect="Everything after it is twice as large and slow, or fails.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return x + rows.double()


@fault(
    "positional_encoding.kept-in-single",
    clause="positional_encoding.shapes",
    wrong="The sum is returned in float32.",
    effect="Everything after it fails, or is pulled down to single precision.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows).float()


@fault(
    "positional_encoding.single-sample-squeezed",
    clause="positional_encoding.shapes",
    wrong="Axes of length one are squeezed away.",
    effect="A sentence alone loses its axis of samples.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows).squeeze(0)


@fault(
    "positional_encoding.concatenated",
    clause="positional_encoding.shapes",
    wrong="The rows are put beside the input and not added to it.",
    effect="The width doubles.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return torch.cat((x, rows.to(x.dtype).expand_as(x)), dim=-1)


# Lengths and widths


@fault(
    "positional_encoding.one-row-short",
    clause="positional_encoding.every-length-served",
    wrong="The table has one row less than the longest sentence.",
    effect="The longest sentence fails, after hours of training.",
    specimens=("plain",),
    kind="loud",
)
def hold_table(self: Seams, module: Node, table: Tensor) -> None:
    self.sound.hold_table(module, table[:-1])


@fault(
    "positional_encoding.learned-table-one-row-short",
    clause="positional_encoding.every-length-served",
    wrong="A length as large as the learned table is refused.",
    effect="The longest sentence fails, after hours of training.",
    choices={"positional_encoding": "learned"},
    kind="loud",
)
def check_length(self: Seams, length: int, rows: int) -> None:
    self.sound.check_length(length, rows - 1)


@fault(
    "positional_encoding.one-position-divides-by-zero",
    clause="positional_encoding.every-length-served",
    wrong="Positions are spread over length - 1 steps.",
    effect="A sentence of one word becomes NaN.",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    rows = self.sound.position_rows(module, length, device)
    return rows / (length - 1) * (length - 1)


@fault(
    "positional_encoding.last-row-repeated",
    clause="positional_encoding.every-length-served",
    wrong="The last position of the table is given the row before it.",
    effect="The end of the longest sentence has its order lost.",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    rows = self.sound.position_rows(module, length, device)
    place = torch.arange(length, device=device)
    return rows[place.clamp(max=max(self.sizes.max_length - 2, 0))]


@fault(
    "positional_encoding.wraps-around",
    clause="positional_encoding.too-long",
    wrong="Positions beyond the table begin again at its first row.",
    effect="Long inputs are silently wrong.",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    most = self.sizes.max_length
    rows = self.sound.position_rows(module, min(length, most), device)
    return rows[torch.arange(length, device=device) % most]


@fault(
    "positional_encoding.stays-at-last",
    clause="positional_encoding.too-long",
    origin="B049",
    wrong="Positions beyond the table are given its last row.",
    effect="The end of a long input has its order lost.",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    most = self.sizes.max_length
    rows = self.sound.position_rows(module, min(length, most), device)
    return rows[torch.arange(length, device=device).clamp(max=most - 1)]


@fault(
    "positional_encoding.cut-off",
    clause="positional_encoding.too-long",
    origin="B049",
    wrong="What lies beyond the table is cut off the input.",
    effect="Long inputs come out shorter.",
)
def add_positions(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.add_positions(module, x[:, : self.sizes.max_length])


@fault(
    "positional_encoding.too-long-unexplained",
    clause="positional_encoding.too-long",
    origin="B049",
    wrong="Nothing compares the length with the table.",
    effect="A long input fails inside of a sum, or a table of one row serves all positions.",
    choices={"positional_encoding": "learned"},
)
def check_length(self: Seams, length: int, rows: int) -> None:
    return None


@fault(
    "positional_encoding.odd-width-one-cosine-too-many",
    clause="positional_encoding.odd-width",
    origin="B040",
    wrong="At an odd width there is a cosine more than columns for it.",
    effect="Building fails with an error about shapes.",
)
def arrange(self: Seams, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    table = sines.new_zeros(len(sines), d_model)
    table[:, 0::2] = sines
    table[:, 1::2] = cosines
    return table


@fault(
    "positional_encoding.odd-width-last-column-empty",
    clause="positional_encoding.odd-width",
    origin="B040",
    wrong="At an odd width the last column is left at zero.",
    effect="One column tells no position.",
)
def arrange(self: Seams, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    table = self.sound.arrange(sines, cosines, d_model)
    table[:, d_model - d_model % 2 :] = 0.0
    return table


@fault(
    "positional_encoding.odd-width-rounded-up",
    clause="positional_encoding.odd-width",
    wrong="At an odd width the exponents are those of the even width above.",
    effect="The table is another one at odd widths.",
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device) * d_model / (d_model + d_model % 2)


# What it holds


@fault(
    "positional_encoding.table-trained",
    clause="positional_encoding.not-trained",
    origin="B045",
    wrong="The fixed table is a parameter.",
    effect="It drifts in training and counts as weights.",
    specimens=("plain",),
    kind="state",
)
def hold_table(self: Seams, module: Node, table: Tensor) -> None:
    module.table = nn.Parameter(table)


@fault(
    "positional_encoding.second-table-trained",
    clause="positional_encoding.not-trained",
    origin="B045",
    wrong="The table that is kept for plots is a parameter.",
    effect="An optimiser holds state for it, and it counts as weights.",
    kind="state",
)
def make_positions(self: Seams) -> Node:
    module = self.sound.make_positions()
    table = self.position_table(self.sizes.max_length, self.sizes.d_model)
    module.register_parameter("shown", nn.Parameter(table))
    return _planted(self, module)


@fault(
    "positional_encoding.learned-table-frozen",
    clause="positional_encoding.not-trained",
    wrong="The learned table is frozen.",
    effect="Positions stay the random numbers that they were born with.",
    choices={"positional_encoding": "learned"},
    kind="state",
)
def make_positions(self: Seams) -> Node:
    module = self.sound.make_positions()
    return _planted(self, module.requires_grad_(False))


@fault(
    "positional_encoding.table-saved",
    clause="positional_encoding.not-saved",
    origin="B047",
    wrong="The fixed table is part of the saved state.",
    effect="A checkpoint cannot be loaded with another longest length.",
    specimens=("plain",),
    kind="state",
)
def hold_table(self: Seams, module: Node, table: Tensor) -> None:
    module.register_buffer("table", table)


@fault(
    "positional_encoding.position-numbers-saved",
    clause="positional_encoding.not-saved",
    origin="B047",
    wrong="The numbers of the positions are part of the saved state.",
    effect="A checkpoint cannot be loaded with another longest length.",
    kind="state",
)
def make_positions(self: Seams) -> Node:
    module = self.sound.make_positions()
    module.register_buffer("numbers", torch.arange(self.sizes.max_length)[None])
    return _planted(self, module)


def _planted(self: Seams, module: Node) -> Node:
    """Return a sound `module` with the seams of the specimen that has the fault."""
    module.how = self
    return module


@fault(
    "positional_encoding.table-plain-attribute",
    clause="positional_encoding.follows-moves",
    origin="B046",
    wrong="The table is a plain attribute of the module.",
    effect="It stays behind when the module is moved, and the sum fails.",
    specimens=("plain",),
    kind="state",
)
def hold_table(self: Seams, module: Node, table: Tensor) -> None:
    module.table = table


@fault(
    "positional_encoding.table-in-a-list",
    clause="positional_encoding.follows-moves",
    origin="B046",
    wrong="The table is kept in a list, and brought to its place in every call.",
    effect="It is copied to the accelerator at every step.",
    kind="state",
)
def make_positions(self: Seams) -> Node:
    module = self.sound.make_positions()
    kept = [self.position_table(self.sizes.max_length, self.sizes.d_model)]
    object.__setattr__(module, "kept", kept)
    return _planted(self, module)


@fault(
    "positional_encoding.rows-made-on-the-processor",
    clause="positional_encoding.follows-moves",
    origin="B046",
    wrong="The rows are made on the processor, wherever the input is.",
    effect="On an accelerator the sum fails.",
    kind="loud",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    return self.sound.position_table(length, self.sizes.d_model)


@fault(
    "positional_encoding.everything-in-half",
    clause="positional_encoding.half-precision",
    origin="B048",
    wrong="Positions and frequencies are in the precision of the input.",
    effect="In half precision late positions run together.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    places = self.sound.positions(len(rows), x.device).to(x.dtype)
    turns = self.sound.frequencies(self.sizes.d_model, x.device).to(x.dtype)
    angles = self.sound.angles(places, turns)
    return x + self.sound.arrange(angles.sin(), angles.cos(), self.sizes.d_model)


@fault(
    "positional_encoding.positions-in-half",
    clause="positional_encoding.half-precision",
    origin="B048",
    wrong="Positions are counted in the precision of the input.",
    effect="In half precision late positions run together.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    places = self.sound.positions(len(rows), x.device).to(x.dtype).double()
    angles = self.sound.angles(places, self.sound.frequencies(self.sizes.d_model, x.device))
    return self.sound.add_rows(
        x, self.sound.arrange(angles.sin(), angles.cos(), self.sizes.d_model)
    )


# Gradients and calls


@fault(
    "positional_encoding.input-detached",
    clause="positional_encoding.gradient-is-identity",
    wrong="The input is detached before the sum.",
    effect="The embeddings are never trained.",
    kind="gradient",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x.detach(), rows)


@fault(
    "positional_encoding.first-position-detached",
    clause="positional_encoding.gradient-is-identity",
    wrong="The first position is detached.",
    effect="The token that starts a sentence is never trained.",
    kind="gradient",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(torch.cat((x[:, :1].detach(), x[:, 1:]), dim=1), rows)


@fault(
    "positional_encoding.gradient-doubled",
    clause="positional_encoding.gradient-is-identity",
    wrong="The input reaches the sum on two ways, one of which adds nothing to it.",
    effect="The embeddings are trained at twice the rate.",
    kind="gradient",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows) + (x - x.detach())


@fault(
    "positional_encoding.added-in-place",
    clause="positional_encoding.input-untouched",
    wrong="The rows are added to the caller's own input.",
    effect="A second call adds them twice.",
    kind="state",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return x.add_(rows.to(x.dtype))


@fault(
    "positional_encoding.counted-on-from-last-call",
    clause="positional_encoding.input-untouched",
    origin="B119",
    wrong="An offset of step-by-step decoding is left from the call before.",
    effect="The second sentence begins where the first one ended.",
    kind="state",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    offset = self.memory["offset"] = self.memory.get("offset", -1) + 1
    return self.sound.add_rows(x, rows.roll(-offset, dims=0))


@fault(
    "positional_encoding.dropout-in-evaluation",
    clause="positional_encoding.input-untouched",
    wrong="A functional dropout is called without being told of the mode.",
    effect="Positions and words are dropped when generating, another set in each call.",
    kind="mode",
)
def drop_embedded(self: Seams, module: nn.Module, x: Tensor) -> Tensor:
    return functional.dropout(x, 0.5)
