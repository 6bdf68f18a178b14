"""A reference model as a backend."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor, nn

from attentest.faults.reference_models.hooks import Cache, Hooks, TextCache
from attentest.faults.reference_models.modules import Node
from attentest_spec import Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.torch import Recipe, TorchBackend, cached_decoding, cached_language_model

DECLARED: Mapping[str, Value] = {
    "norm_epsilon": 1e-5,
    "norm_epsilon_place": "inside-root",
    "norm_variance": "biased",
    "rms_epsilon": 1e-6,
    "rms_epsilon_place": "inside-root",
    "rms_weight": "weight",
    "rms_bias": "none",
    "rms_arithmetic": "as-computed",
    "projection_bias": "present",
    "padding_side": "right",
    "sequence_marks": "start-and-end",
    "loss_input": "logits",
    "loss_normaliser": "tokens",
    "loss_without_targets": "zero",
    "cache_positions": "columns",
    "cache_update": "functional",
    "cache_sessions": "independent",
    "padded_positions": "columns",
    "router_scores": "softmax",
    "routing_weights": "renormalised",
    "router_bias": "none",
    "shared_expert": "none",
    "routing_scale": "none",
    "routing_arithmetic": "as-computed",
}
"""The choices that a reference model declares by default, besides the options of the paper."""

Build = Callable[[Hooks], nn.Module]


def reference_backend(
    model: type[Hooks], choices: Mapping[str, Value] | None = None, name: str = ""
) -> TorchBackend:
    """Return a backend for `model`, with `choices` on top of :data:`DECLARED`."""
    declared = {**DECLARED, **(choices or {})}
    variants = partial(_Recipes, model)
    return TorchBackend(
        name=name or model.name,
        title=f"reference model {model.name} of the suite",
        recipes=variants(Choices.of(declared)),
        choices=declared,
        variants=variants,
    )


class _Recipes(Mapping[str, Recipe]):
    """The recipes of `model`, each made when it is asked for: diagnosis asks thousands for one."""

    def __init__(self, model: type[Hooks], choices: Choices) -> None:
        self._model = model
        self._choices = choices

    def __getitem__(self, component: str) -> Recipe:
        model, choices = self._model, self._choices
        if component == "cached_decoding":
            return cached_decoding(
                lambda sizes: _hooks(model, sizes, choices).make_model(),
                start=_start,
                step=_step,
                reorder=_reorder,
                parameters=model.tables["model"],
            )
        if component == "cached_language_model":
            return cached_language_model(
                lambda sizes: _hooks(model, sizes, choices).make_language_model(),
                start=_start_text,
                step=_step_text,
                reorder=_reorder_text,
                parameters=model.tables["language_model"],
            )
        build = _BUILDS[component]
        return Recipe(
            build=lambda sizes: build(_hooks(model, sizes, choices)),
            call=_CALLS.get(component, _call),
            methods=_METHODS if component == "model" else {},
            parameters=model.tables.get(component, {}),
        )

    def __iter__(self) -> Iterator[str]:
        yield from _BUILDS
        yield from ("cached_decoding", "cached_language_model")

    def __len__(self) -> int:
        return len(_BUILDS) + 2


def _hooks(model: type[Hooks], sizes: Sizes, choices: Choices) -> Hooks:
    hooks = model(sizes, choices)
    hooks.check_sizes()
    return hooks


_BUILDS: Mapping[str, Build] = {
    "padding_mask": lambda how: Node(how, "padding_mask"),
    "causal_mask": lambda how: Node(how, "causal_mask"),
    "target_mask": lambda how: Node(how, "target_mask"),
    "attention": lambda how: how.make_attention(),
    "multi_head_attention": lambda how: how.make_multi_head_attention(),
    "positional_encoding": lambda how: how.make_positions(),
    "embedding": lambda how: how.make_embedding(how.sizes.source_vocabulary),
    "layer_norm": lambda how: how.make_norm(),
    "rms_norm": lambda how: how.make_rms_norm(),
    "feed_forward": lambda how: how.make_feed_forward(),
    "mixture_of_experts": lambda how: how.make_mixture(),
    "residual": lambda how: how.make_residual(),
    "encoder_layer": lambda how: how.make_encoder_layer(),
    "encoder": lambda how: how.make_encoder(),
    "decoder_layer": lambda how: how.make_decoder_layer(),
    "decoder": lambda how: how.make_decoder(),
    "generator": lambda how: how.make_generator(),
    "model": lambda how: how.make_model(),
    "batch": lambda how: Node(how, "batch"),
    "padded_batch": lambda how: Node(how, "padded_batch"),
    "packed_batch": lambda how: Node(how, "packed_batch"),
    "loss": lambda how: how.make_loss(),
    "learning_rate": lambda how: how.make_schedule(),
    "optimiser": lambda how: how.make_optimiser(),
    "grouped_optimiser": lambda how: how.make_grouped_optimiser(),
    "gradient_clipping": lambda how: Node(how, "clip"),
    "greedy_decoding": lambda how: how.make_decoding("greedy_decoding"),
    "beam_search": lambda how: how.make_decoding("beam_search"),
    "sampling": lambda how: Node(how, "sampling"),
    "rotary": lambda how: how.make_rotary(),
    "causal_layer": lambda how: how.make_causal_layer(),
    "language_model": lambda how: how.make_language_model(),
}


def _call(built: Node, *inputs: Any) -> Any:
    return built(*inputs)


def _padding_mask(built: Node, tokens: Tensor, pad: int) -> Any:
    return built.how.padding_mask(tokens, pad)


def _causal_mask(built: Node, length: int) -> Any:
    return built.how.causal_mask(length)


def _target_mask(built: Node, tokens: Tensor, pad: int) -> Any:
    return built.how.target_mask(tokens, pad)


def _residual(built: Node, x: Tensor, sublayer: Tensor) -> Any:
    return built.how.residual(built, built.norm, x, lambda inner: inner @ sublayer)


def _encode(built: Node, source: Tensor) -> Any:
    return built.how.encode(built, source)


def _decode(built: Node, target: Tensor, memory: Tensor, source: Tensor) -> Any:
    return built.how.decode(built, target, memory, source)


def _start(built: Node, source: Tensor) -> Any:
    return built.how.start_cache(built, source)


def _step(built: Node, cache: Cache, tokens: Tensor) -> Any:
    return built.how.step_cache(built, cache, tokens)


def _reorder(built: Node, cache: Cache, origin: Tensor) -> Any:
    return built.how.reorder_cache(built, cache, origin)


def _start_text(built: Node, rows: int) -> Any:
    return built.how.start_text(built, rows)


def _step_text(
    built: Node, cache: TextCache, tokens: Tensor, mask: Tensor | None, positions: Tensor | None
) -> Any:
    return built.how.step_text(built, cache, tokens, mask, positions)


def _reorder_text(built: Node, cache: TextCache, origin: Tensor) -> Any:
    return built.how.reorder_text(built, cache, origin)


def _updates(
    built: Node, parameters: Tensor, gradients: Iterable[Tensor], rates: Iterable[Tensor]
) -> Iterator[Tensor]:
    """Yield the parameters after each update, of a whole run or of gradients as they come."""
    run = built if isinstance(gradients, Tensor) else built.how.updates
    yield from run(parameters, gradients, rates)


class _Searched(nn.Module):
    """A built model as greedy decoding asks one: for the memory of a source, and for scores."""

    def __init__(self, built: Node) -> None:
        super().__init__()
        self.built = built
        self.source = torch.zeros(0, 0, dtype=torch.long)

    def play(self, source: Tensor) -> Self:
        """Take the source (B, S) that the next sequences belong to."""
        self.source = source
        return self

    def memory(self, source: Tensor) -> Tensor:
        """Return the memory (B, S, D) of a source (B, S)."""
        encoded: Tensor = _encode(self.built, source)
        return encoded

    def answer(self, tokens: Tensor, memory: Tensor) -> Tensor:
        """Return the output (B, T, V) after every token of the target (B, T)."""
        output: Tensor = _decode(self.built, tokens, memory, self.source)
        return output


def _greedy(built: Node, source: Tensor, begin: Tensor, length: int, end: int) -> Any:
    searching = Node(built.how, "greedy_decoding", script=_Searched(built))
    return built.how.greedy_decoding(searching, source, begin, length)


_CALLS: Mapping[str, Callable[..., Any]] = {
    "optimiser": _updates,
    "padding_mask": _padding_mask,
    "causal_mask": _causal_mask,
    "target_mask": _target_mask,
    "residual": _residual,
}

_METHODS: Mapping[str, Callable[..., Any]] = {
    "encode": _encode,
    "decode": _decode,
    "greedy": _greedy,
}
