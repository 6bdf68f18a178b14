"""Backends of the decoder-only models of litgpt, each made of one configuration."""

from litgpt.config import Config
from litgpt.model import GPT

from attentest_litgpt import calls, names
from attentest_litgpt.reading import choices_of
from attentest_litgpt.sizes import sized
from attentest_spec import Limits, Sizes
from attentest_spec.torch import Recipe, TorchBackend, cached_language_model


def of_config(config: Config, name: str = "litgpt_model") -> TorchBackend:
    """Return the model of a configuration, and its parts, as a backend.

    It is built at small sizes with random weights, whatever the sizes of the configuration are;
    all other settings are its own. Where layers differ, all of them are those with full attention.
    Raises NotJudged, a ValueError with the reason, for a design that the specification does not
    describe.
    """

    def build(sizes: Sizes) -> GPT:
        return GPT(sized(config, sizes))

    whole = names.model(config)
    return TorchBackend(
        name=name,
        title=f"litgpt's GPT, with the configuration {config.name or 'given'}",
        choices=choices_of(config),
        limits=Limits(dropout=False, cross=False, masks=("none", "causal"), positions=("none",)),
        recipes={
            "language_model": Recipe(build, calls.logits, parameters=whole),
            "cached_language_model": cached_language_model(
                build, start=calls.empty_cache, step=calls.step, parameters=whole
            ),
            "causal_layer": Recipe(
                lambda sizes: calls.part(config, sizes),
                calls.block,
                parameters=names.block(config),
            ),
            "multi_head_attention": Recipe(
                lambda sizes: calls.part(config, sizes, "attn"),
                calls.attend,
                parameters=names.heads(config),
            ),
            "feed_forward": Recipe(
                lambda sizes: config.mlp_class(sized(config, sizes.but(heads=1, kv_heads=0))),
                parameters=names.network(config),
            ),
            **_parts(config),
        },
    )


def _parts(config: Config) -> dict[str, Recipe]:
    """Return the parts that some configurations have: RMS norms, and turns of whole heads."""
    found: dict[str, Recipe] = {}
    if config.norm_class_name == "RMSNorm":
        found["rms_norm"] = Recipe(
            lambda sizes: config.norm_class(sizes.d_model, eps=config.norm_eps),
            parameters=names.norm(config),
        )
    if config.rotary_percentage == 1 and not config.rope_interleave:
        found["rotary"] = Recipe(lambda sizes: calls.turns(config, sizes), calls.rotate)
    return found


llama = of_config(Config.from_name("Llama-3.1-8B"), "litgpt")
pythia = of_config(Config.from_name("pythia-160m"), "litgpt_pythia")
