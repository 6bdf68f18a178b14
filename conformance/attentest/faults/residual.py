"""Faults of the chapter `residual`: each function overrides the seam that it is named after."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Seams

Function = Callable[[Tensor], Tensor]
PRE = {"norm_placement": "pre"}


@fault(
    "residual.pre-for-post",
    clause="residual.formula",
    origin="B070",
    wrong="The norm comes before the sublayer; after the sum was declared.",
    effect="It trains, and numbers differ from the paper and from its checkpoints.",
)
def residual(self: Seams, module: nn.Module, norm: nn.Module, x: Tensor, f: Function) -> Tensor:
    return x + self.drop_branch(module, f(norm(x)))


@fault(
    "residual.post-for-pre",
    clause="residual.formula",
    origin="B070",
    wrong="The norm comes after the sum; before the sublayer was declared.",
    effect="There is no straight path through a deep stack.",
    choices=PRE,
)
def residual(self: Seams, module: nn.Module, norm: nn.Module, x: Tensor, f: Function) -> Tensor:
    result: Tensor = norm(x + self.drop_branch(module, f(x)))
    return result


@fault(
    "residual.mean-for-sum",
    clause="residual.formula",
    wrong="The two paths are averaged, not added.",
    effect="A norm after it hides it; without one, every layer halves its input.",
    choices=PRE,
)
def add_branch(self: Seams, x: Tensor, branch: Tensor) -> Tensor:
    return (x + branch) / 2


@fault(
    "residual.branch-normed-alone",
    clause="residual.formula",
    wrong="The norm is taken of the branch, and x is added to it.",
    effect="The residual stream is never normalised.",
)
def residual(self: Seams, module: nn.Module, norm: nn.Module, x: Tensor, f: Function) -> Tensor:
    return x + norm(self.drop_branch(module, f(x)))


@fault(
    "residual.skip-from-normed",
    clause="residual.identity-path",
    origin="B073",
    wrong="The skip is taken from the normalised input.",
    effect="The straight path is broken at every layer.",
    choices=PRE,
)
def residual(self: Seams, module: nn.Module, norm: nn.Module, x: Tensor, f: Function) -> Tensor:
    inner: Tensor = norm(x)
    return inner + self.drop_branch(module, f(inner))


@fault(
    "residual.skip-left-out",
    clause="residual.identity-path",
    origin="B075",
    wrong="The sum is the branch alone.",
    effect="Deep stacks stop learning.",
)
def add_branch(self: Seams, x: Tensor, branch: Tensor) -> Tensor:
    return branch


@fault(
    "residual.skip-doubled",
    clause="residual.identity-path",
    wrong="The input is added twice.",
    effect="The branch counts half.",
)
def add_branch(self: Seams, x: Tensor, branch: Tensor) -> Tensor:
    return x + x + branch


@fault(
    "residual.skip-averaged-over-sentence",
    clause="residual.per-position",
    wrong="The skip carries the mean of the sentence beside the word.",
    effect="Words depend on the length of their sentence, and on the future.",
)
def add_branch(self: Seams, x: Tensor, branch: Tensor) -> Tensor:
    return x + x.mean(dim=-2, keepdim=True) + branch


@fault(
    "residual.branch-of-neighbouring-sample",
    clause="residual.per-position",
    wrong="The branch is centred over the samples of the batch.",
    effect="A sentence depends on the ones it was batched with.",
)
def add_branch(self: Seams, x: Tensor, branch: Tensor) -> Tensor:
    return x + branch - branch.mean(dim=0, keepdim=True)


@fault(
    "residual.added-in-place",
    clause="residual.input-untouched",
    origin="B077",
    wrong="The branch is added into the caller's own array.",
    effect="Whoever held x holds the sum.",
)
def add_branch(self: Seams, x: Tensor, branch: Tensor) -> Tensor:
    total = x + branch
    x.data.copy_(total)
    return total


@fault(
    "residual.output-written-back",
    clause="residual.input-untouched",
    origin="B077",
    wrong="The norm is written back into x.",
    effect="Whoever held x holds the output.",
)
def residual(self: Seams, module: nn.Module, norm: nn.Module, x: Tensor, f: Function) -> Tensor:
    result = self.sound.residual(module, norm, x, f)
    x.data.copy_(result)
    return result


@fault(
    "residual.skip-detached",
    clause="residual.gradient-through-identity",
    wrong="The skip is detached from the graph.",
    effect="Values are right; the straight path carries no gradient.",
    kind="gradient",
)
def add_branch(self: Seams, x: Tensor, branch: Tensor) -> Tensor:
    return x.detach() + branch


@fault(
    "residual.branch-detached",
    clause="residual.gradient-through-identity",
    wrong="The branch is detached from the graph.",
    effect="Values are right; no sublayer is trained.",
    kind="gradient",
)
def add_branch(self: Seams, x: Tensor, branch: Tensor) -> Tensor:
    return x + branch.detach()


@fault(
    "residual.norm-detached",
    clause="residual.every-parameter-reached",
    wrong="The norm's output is replaced by one that no gradient reaches the parameters from.",
    effect="Gain and bias stay as they were born.",
    kind="gradient",
)
def norm_after(self: Seams, norm: nn.Module, x: Tensor) -> Tensor:
    return self.sound.norm_after(norm, x).detach() + (x - x.detach())


@fault(
    "residual.norm-never-called",
    clause="residual.every-parameter-reached",
    origin="B069",
    wrong="The norm is declared and never called.",
    effect="The residual stream grows with every layer, and the norm has no gradient.",
)
def norm_after(self: Seams, norm: nn.Module, x: Tensor) -> Tensor:
    return x


@fault(
    "residual.dropout-on-sum",
    clause="residual.dropout-on-branch-alone",
    wrong="Dropout acts on the sum.",
    effect="What the residual connection is there to keep is thrown away.",
    kind="mode",
)
def residual(self: Seams, module: nn.Module, norm: nn.Module, x: Tensor, f: Function) -> Tensor:
    total = self.dropout(module, x + f(self.norm_before(norm, x)))
    return self.norm_after(norm, total)


@fault(
    "residual.dropout-on-input",
    clause="residual.dropout-on-branch-alone",
    origin="systems.md A (004)",
    wrong="Dropout acts on x, not on what the sublayer returns.",
    effect="Inputs vanish from the skip and nothing of the branch is regularised.",
    kind="mode",
)
def residual(self: Seams, module: nn.Module, norm: nn.Module, x: Tensor, f: Function) -> Tensor:
    branch = f(self.norm_before(norm, x))
    return self.norm_after(norm, self.dropout(module, x) + branch)


@fault(
    "residual.no-dropout",
    clause="residual.branch-is-dropped",
    wrong="The branch is added without dropout.",
    effect="Nothing shows, but for results weeks later.",
    kind="mode",
)
def drop_branch(self: Seams, module: nn.Module, branch: Tensor) -> Tensor:
    return branch


@fault(
    "residual.dropout-keeps-the-rate",
    clause="residual.branch-is-dropped",
    wrong="The rate is taken for the probability of being kept.",
    effect="At 0.1 nine tenths are dropped; at 0.9 hardly any.",
    kind="mode",
)
def drop_branch(self: Seams, module: nn.Module, branch: Tensor) -> Tensor:
    rate = self.dropout_rate()
    return self.drop(branch, 1.0 - rate) if rate > 0 and module.training else branch


@fault(
    "residual.dropout-in-evaluation",
    clause="residual.dropout-only-in-training",
    wrong="Dropout does not ask for the mode.",
    effect="Evaluation is random.",
    kind="mode",
)
def drop_branch(self: Seams, module: nn.Module, branch: Tensor) -> Tensor:
    return self.drop(branch, self.dropout_rate()) if self.dropout_rate() > 0 else branch


@fault(
    "residual.rescaled-in-evaluation",
    clause="residual.dropout-only-in-training",
    wrong="Evaluation multiplies the branch by what dropout keeps.",
    effect="Every number is shifted once there is a dropout rate.",
    kind="mode",
)
def drop_branch(self: Seams, module: nn.Module, branch: Tensor) -> Tensor:
    trained = self.sound.drop_branch(module, branch)
    return trained if module.training else branch * (1.0 - self.dropout_rate())


@fault(
    "residual.dropout-not-scaled",
    clause="residual.dropout-on-branch-alone",
    wrong="The branch is dropped in training, and what stays is not scaled up.",
    effect="Every branch weighs less in training than ever after.",
    kind="mode",
)
def drop_branch(self: Seams, module: nn.Module, branch: Tensor) -> Tensor:
    rate = self.dropout_rate() if self.is_training(module) else 0.0
    return branch * (torch.rand_like(branch) >= rate)


@fault(
    "residual.dropout-twice",
    clause="residual.dropout-on-branch-alone",
    wrong="The branch is dropped twice, by the sublayer's caller and by the connection.",
    effect="The rate is higher than asked for.",
    kind="mode",
)
def drop_branch(self: Seams, module: nn.Module, branch: Tensor) -> Tensor:
    return self.dropout(module, self.dropout(module, branch))


@fault(
    "residual.one-draw-for-all",
    clause="residual.branch-is-dropped",
    wrong="One draw drops or keeps the branch of the whole batch.",
    effect="Layers are skipped at random instead of numbers.",
    kind="mode",
)
def drop_branch(self: Seams, module: nn.Module, branch: Tensor) -> Tensor:
    rate = self.dropout_rate() if self.is_training(module) else 0.0
    return branch * (torch.rand(1) >= rate) / (1.0 - rate)
