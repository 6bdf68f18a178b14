"""Faults of the chapter `residual`."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Function, Hooks, Node

PRE = {"norm_placement": "pre"}


@fault("residual.pre-for-post", "formula", seam="residual", origin="B070")
def pre_for_post(self: Hooks, module: Node, norm: Node, x: Tensor, f: Function) -> Tensor:
    """Pre-norm is used; post-norm was declared. It trains, and no checkpoint of the paper fits."""
    return x + self.drop_branch(module, f(norm(x)))


@fault("residual.post-for-pre", "formula", seam="residual", origin="B070", choices=PRE)
def post_for_pre(self: Hooks, module: Node, norm: Node, x: Tensor, f: Function) -> Tensor:
    """Post-norm is used; pre-norm was declared. There is no identity path through the stack."""
    result: Tensor = norm(x + self.drop_branch(module, f(x)))
    return result


@fault("residual.mean-for-sum", "formula", seam="add_branch", choices=PRE)
def mean_for_sum(self: Hooks, x: Tensor, branch: Tensor) -> Tensor:
    """The two paths are averaged, not added. Without a norm each layer halves its input."""
    return (x + branch) / 2


@fault("residual.branch-normed-alone", "formula", seam="residual")
def branch_normed_alone(self: Hooks, module: Node, norm: Node, x: Tensor, f: Function) -> Tensor:
    """The norm is applied to the branch alone. The residual stream is never normalised."""
    return x + norm(self.drop_branch(module, f(x)))


@fault("residual.skip-from-normed", "identity-path", seam="residual", origin="B073", choices=PRE)
def skip_from_normed(self: Hooks, module: Node, norm: Node, x: Tensor, f: Function) -> Tensor:
    """The skip is taken from the normalised input. The straight path is broken at every layer."""
    inner: Tensor = norm(x)
    return inner + self.drop_branch(module, f(inner))


@fault("residual.skip-left-out", "identity-path", seam="add_branch", origin="B075")
def skip_left_out(self: Hooks, x: Tensor, branch: Tensor) -> Tensor:
    """The sum is the branch alone. Deep stacks stop learning."""
    return branch


@fault("residual.skip-doubled", "identity-path", seam="add_branch")
def skip_doubled(self: Hooks, x: Tensor, branch: Tensor) -> Tensor:
    """The input is added twice. The branch counts half."""
    return x + x + branch


@fault("residual.skip-averaged-over-sentence", "per-position", seam="add_branch")
def skip_averaged_over_sentence(self: Hooks, x: Tensor, branch: Tensor) -> Tensor:
    """The mean of the sequence is added to the skip.

    Tokens depend on their sequence, and on the future.
    """
    return x + x.mean(dim=-2, keepdim=True) + branch


@fault("residual.branch-of-neighbouring-sample", "per-position", seam="add_branch")
def branch_of_neighbouring_sample(self: Hooks, x: Tensor, branch: Tensor) -> Tensor:
    """The branch is centred over the batch. Samples affect each other."""
    return x + branch - branch.mean(dim=0, keepdim=True)


@fault("residual.added-in-place", "input-untouched", seam="add_branch", origin="B077")
def added_in_place(self: Hooks, x: Tensor, branch: Tensor) -> Tensor:
    """The branch is added to the caller's own array. Other holders of x see the sum."""
    total = x + branch
    x.data.copy_(total)
    return total


@fault("residual.output-written-back", "input-untouched", seam="residual", origin="B077")
def output_written_back(self: Hooks, module: Node, norm: Node, x: Tensor, f: Function) -> Tensor:
    """The norm is written back into x. Other holders of x see the output."""
    result = self.correct.residual(module, norm, x, f)
    x.data.copy_(result)
    return result


@fault("residual.skip-detached", "gradient-through-identity", seam="add_branch", kind="gradient")
def skip_detached(self: Hooks, x: Tensor, branch: Tensor) -> Tensor:
    """The skip is detached from the graph. Values are right; the skip has no gradient."""
    return x.detach() + branch


@fault("residual.branch-detached", "gradient-through-identity", seam="add_branch", kind="gradient")
def branch_detached(self: Hooks, x: Tensor, branch: Tensor) -> Tensor:
    """The branch is detached from the graph. Values are right; no sublayer is trained."""
    return x + branch.detach()


@fault("residual.norm-detached", "every-parameter-reached", seam="norm_after", kind="gradient")
def norm_detached(self: Hooks, norm: Node, x: Tensor) -> Tensor:
    """No gradient reaches the parameters of the norm. Weight and bias are never trained."""
    return self.correct.norm_after(norm, x).detach() + (x - x.detach())


@fault("residual.norm-never-called", "every-parameter-reached", seam="norm_after", origin="B069")
def norm_never_called(self: Hooks, norm: Node, x: Tensor) -> Tensor:
    """The norm is never called. The residual stream grows with every layer."""
    return x


@fault("residual.dropout-on-sum", "dropout-on-branch-alone", seam="residual", kind="mode")
def dropout_on_sum(self: Hooks, module: Node, norm: Node, x: Tensor, f: Function) -> Tensor:
    """Dropout acts on the sum. It also drops what the residual connection should keep."""
    total = self.dropout(module, x + f(self.norm_before(norm, x)))
    return self.norm_after(norm, total)


@fault(
    "residual.dropout-on-input",
    "dropout-on-branch-alone",
    seam="residual",
    origin="systems.md A (004)",
    kind="mode",
)
def dropout_on_input(self: Hooks, module: Node, norm: Node, x: Tensor, f: Function) -> Tensor:
    """Dropout acts on x, not on what the sublayer returns.

    Inputs vanish from the skip and nothing of the branch is regularised.
    """
    branch = f(self.norm_before(norm, x))
    return self.norm_after(norm, self.dropout(module, x) + branch)


@fault("residual.no-dropout", "branch-is-dropped", seam="drop_branch", kind="mode")
def no_dropout(self: Hooks, module: Node, branch: Tensor) -> Tensor:
    """The branch is added without dropout. Only the final quality shows it."""
    return branch


@fault("residual.dropout-keeps-the-rate", "branch-is-dropped", seam="drop_branch", kind="mode")
def dropout_keeps_the_rate(self: Hooks, module: Node, branch: Tensor) -> Tensor:
    """The rate is used as the probability to keep. A rate of 0.1 drops nine tenths."""
    rate = self.dropout_rate()
    return self.drop(branch, 1.0 - rate) if rate > 0 and module.training else branch


@fault(
    "residual.dropout-in-evaluation", "dropout-only-in-training", seam="drop_branch", kind="mode"
)
def dropout_in_evaluation(self: Hooks, module: Node, branch: Tensor) -> Tensor:
    """Dropout ignores the mode. Evaluation is random."""
    return self.drop(branch, self.dropout_rate()) if self.dropout_rate() > 0 else branch


@fault(
    "residual.rescaled-in-evaluation", "dropout-only-in-training", seam="drop_branch", kind="mode"
)
def rescaled_in_evaluation(self: Hooks, module: Node, branch: Tensor) -> Tensor:
    """The branch is scaled by 1 - p in evaluation. Every number is off."""
    trained = self.correct.drop_branch(module, branch)
    return trained if module.training else branch * (1.0 - self.dropout_rate())


@fault("residual.dropout-not-scaled", "dropout-on-branch-alone", seam="drop_branch", kind="mode")
def dropout_not_scaled(self: Hooks, module: Node, branch: Tensor) -> Tensor:
    """The branch is dropped in training, and what stays is not scaled up.

    Every branch weighs less in training than ever after.
    """
    rate = self.dropout_rate() if self.is_training(module) else 0.0
    return branch * (torch.rand_like(branch) >= rate)


@fault("residual.dropout-twice", "dropout-on-branch-alone", seam="drop_branch", kind="mode")
def dropout_twice(self: Hooks, module: Node, branch: Tensor) -> Tensor:
    """The branch is dropped twice. The effective rate is higher than given."""
    return self.dropout(module, self.dropout(module, branch))


@fault("residual.one-draw-for-all", "branch-is-dropped", seam="drop_branch", kind="mode")
def one_draw_for_all(self: Hooks, module: Node, branch: Tensor) -> Tensor:
    """One draw drops or keeps the branch of a whole batch. Whole layers are skipped."""
    rate = self.dropout_rate() if self.is_training(module) else 0.0
    return branch * (torch.rand(1) >= rate) / (1.0 - rate)
