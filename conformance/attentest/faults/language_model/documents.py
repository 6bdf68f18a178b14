"""Faults in what tokens of several documents in one row see."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.language_model.settings import ROTARY
from attentest.faults.reference_models import Hooks

PACKED = {**ROTARY, "packed_documents": "by-positions"}
INSIDE = ("causal_layer",)


@fault(
    "language_model.documents-leak",
    "packed-documents",
    seam="limit_documents",
    origin="M149",
    choices=PACKED,
    components=INSIDE,
)
def documents_leak(self: Hooks, keep: Tensor, places: Tensor) -> Tensor:
    """The positions begin again, and every earlier token is seen. Documents read each other."""
    return keep


@fault(
    "language_model.documents-leak-beside-padding",
    "packed-documents",
    seam="limit_documents",
    origin="M151",
    choices=PACKED,
    components=INSIDE,
)
def documents_leak_beside_padding(self: Hooks, keep: Tensor, places: Tensor) -> Tensor:
    """With a mask of padding documents are not separated. It depends on the path that is taken."""
    return keep if keep.shape[0] > 1 else self.correct.limit_documents(keep, places)


@fault(
    "language_model.documents-undeclared",
    "packed-documents",
    seam="limit_documents",
    origin="M155",
    choices=ROTARY,
    components=INSIDE,
)
def documents_undeclared(self: Hooks, keep: Tensor, places: Tensor) -> Tensor:
    """Positions that begin again hide what is before. A text with a gap loses its beginning."""
    return keep & self.correct.same_document(places)


@fault(
    "language_model.documents-of-the-first-row",
    "packed-documents",
    seam="same_document",
    origin="M152",
    choices=PACKED,
    components=INSIDE,
)
def documents_of_the_first_row(self: Hooks, places: Tensor) -> Tensor:
    """All rows are divided as the first one is. A batch of one row is right."""
    return self.correct.same_document(places)[:1].expand(len(places), -1, -1, -1)


@fault(
    "language_model.documents-read-ahead",
    "packed-documents",
    seam="limit_documents",
    origin="facebookresearch/xformers#1185",
    choices=PACKED,
    components=INSIDE,
)
def documents_read_ahead(self: Hooks, keep: Tensor, places: Tensor) -> Tensor:
    """The block-diagonal mask takes the place of the causal one. Every token sees the next one."""
    return self.correct.same_document(places)


@fault(
    "language_model.documents-begin-late",
    "packed-documents",
    seam="same_document",
    choices=PACKED,
    components=INSIDE,
)
def documents_begin_late(self: Hooks, places: Tensor) -> Tensor:
    """The first token of a document belongs to the one before. It begins with a foreign text."""
    before = (torch.arange(places.shape[1], device=places.device) - 1).clamp(min=0)
    return self.correct.same_document(places)[:, :, before][:, :, :, before]


@fault(
    "language_model.documents-at-zero",
    "packed-documents",
    seam="same_document",
    choices=PACKED,
    components=INSIDE,
)
def documents_at_zero(self: Hooks, places: Tensor) -> Tensor:
    """A document begins at position 0 alone. A text that was cut sees the one before it."""
    number = (places == 0).long().cumsum(dim=1)
    return (number[:, :, None] == number[:, None, :])[:, None]


@fault(
    "language_model.documents-by-falling-positions",
    "packed-documents",
    seam="same_document",
    origin="modelscope/ms-swift PR#9904",
    choices=PACKED,
    components=INSIDE,
)
def documents_by_falling_positions(self: Hooks, places: Tensor) -> Tensor:
    """A document begins where positions fall. One that begins further on is not noticed."""
    number = torch.zeros_like(places)
    number[:, 1:] = (places.diff(dim=1) < 0).long().cumsum(dim=1)
    return (number[:, :, None] == number[:, None, :])[:, None]


@fault(
    "language_model.last-document-alone",
    "document-alone",
    seam="same_document",
    origin="M154",
    choices=PACKED,
    components=INSIDE,
)
def last_document_alone(self: Hooks, places: Tensor) -> Tensor:
    """The last document of a row is separated, and the others are one. Two documents are right."""
    same = self.correct.same_document(places)
    last = same[:, 0, -1]
    return (last[:, :, None] == last[:, None, :])[:, None]


@fault(
    "language_model.documents-lose-their-first-token",
    "packed-documents",
    seam="same_document",
    origin="swiss-ai/Megatron-LM PR#40",
    choices=PACKED,
    components=INSIDE,
)
def documents_lose_their_first_token(self: Hooks, places: Tensor) -> Tensor:
    """The block before a document ends one column late. Its first token is seen by none."""
    same = self.correct.same_document(places)
    later = torch.eye(same.shape[-1], dtype=torch.bool, device=same.device)
    goes_on = torch.nn.functional.pad(same.diagonal(offset=-1, dim1=-2, dim2=-1), (1, 0))
    return same & (goes_on[..., None, :] | later)
