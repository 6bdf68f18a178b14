"""The component that a piece of code is, by its name."""

import inspect
import re
from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any

from attentest.targets.adapt.reading import Unclear
from attentest.targets.definitions import definitions

_NAMES = {
    "attention": (
        "attention attn attend sdpa scaledattention dotproductattention scaleddotproduct "
        "scaleddotproductattention scaleddotattention softmaxattention fullattention "
        "scaleddpattention scaledotproductattention scaledotattention dotattention "
        "scaleddotproductattn scaledotproductattn dotproductattn scaleproductattention "
        "scaledproductattention scaledattn"
    ),
    "multi_head_attention": (
        "multiheadattention multiheadedattention multiheadattn mha selfattention crossattention "
        "multiheadselfattention multiheadcrossattention causalselfattention maskedselfattention "
        "multiheaddotproductattention multiheadattentionlayer attentionlayer mhsa "
        "groupedqueryattention groupqueryattention multiqueryattention"
    ),
    "layer_norm": "layernorm layernormal layernormalization layernormalisation ln norm",
    "rms_norm": (
        "rmsnorm rmslayernorm rmsnormalization rmsnormalisation rootmeansquarenorm "
        "rootmeansquarelayernorm rootmeansquarelayernormalization rms t5layernorm mt5layernorm"
    ),
    "feed_forward": (
        "feedforward positionwisefeedforward positionwiseffn pointwisefeedforward ffn mlp ff "
        "feedforwardnetwork feedforwardnet feedforwardlayer feedforwardblock "
        "positionwisefeedforwardnetwork positionwisefeedforwardlayer poswiseffn "
        "positionwisefeedforwardnet swiglu geglu reglu swiglufeedforward swigluffn swiglumlp "
        "gatedfeedforward gatedmlp gatedffn gegluffn geglufeedforward geglumlp "
        "feedfoward feedfowardlayer feedfowardblock feedfowardnetwork"
    ),
    "mixture_of_experts": (
        "mixtureofexperts mixtureofexpert moe moelayer moeblock moemlp moeffn moefeedforward "
        "sparsemoe sparsemoeblock sparsemoelayer sparsemoemlp topkmoe moenetwork moemodule "
        "mixtureofexpertslayer mixtureofexpertsblock sparsemixtureofexperts expertlayer "
        "sparsemixtureofexpertsblock mixtureofexpertsffn mixtureofexpertsfeedforward moeff "
        "routedexperts sparseexperts switchfeedforward switchmlp switchffn"
    ),
    "positional_encoding": (
        "positionalencoding positionencoding positionalembedding positionembedding posenc "
        "positionalencoder sinusoidalpositionalencoding sinusoidalpositionalembedding "
        "positionencoder sinusoidalpositionencoder "
        "learnedpositionalencoding learnedpositionalembedding positionalencodinglayer "
        "positionalembeddings learnedpositionalembeddings sinusoidalpositionalembeddings "
        "sinusoidencodingtable sinusoidalencodingtable sinusoidtable sinusoidaltable "
        "positionencodingtable positionalencodingtable sinusoidencoding sinusoidalencoding"
    ),
    "embedding": (
        "embedding embeddings tokenembedding tokenembeddings inputembedding inputembeddings "
        "wordembedding wordembeddings embedder"
    ),
    "residual": "residual residualconnection sublayerconnection addnorm addandnorm",
    "encoder_layer": (
        "encoderlayer encoderblock transformerencoderlayer transformerencoderblock "
        "transformerblock transformerlayer"
    ),
    "decoder_layer": ("decoderlayer decoderblock transformerdecoderlayer transformerdecoderblock"),
    "encoder": "encoder transformerencoder encoderstack",
    "decoder": "decoder transformerdecoder decoderstack",
    "generator": "generator outputlayer outputprojection projectionlayer lmhead",
    "model": "transformer transformermodel encoderdecoder seq2seqtransformer model",
    "padding_mask": (
        "paddingmask padmask keypaddingmask attnpadmask attnpaddingmask attentionpaddingmask "
        "srcmask sourcemask srcpaddingmask srcpadmask encodermask inputmask sequencemask "
        "lengthmask lengthsmask lengthstomask lengthtomask lenstomask lenmask maskfromlengths "
        "maskfromlens getmaskfromlengths getmaskfromlens lengthstopaddingmask"
    ),
    "causal_mask": (
        "causalmask subsequentmask squaresubsequentmask lookaheadmask causalattentionmask "
        "nopeakmask subsequencemask attnsubsequencemask attnsubsequentmask futuremask "
        "triangularmask autoregressivemask"
    ),
    "batch": "batch makebatch createbatch preparebatch trainingbatch transformerbatch",
    "loss": (
        "loss losses labelsmoothing labelsmoothingloss crossentropy crossentropyloss celoss "
        "lossfunction lossfn lossfunc computeloss maskedloss sequenceloss smoothedcrossentropy "
        "labelsmoothingcrossentropy labelsmoothedcrossentropy smoothcrossentropy smoothingloss "
        "labelsmoothednllloss nllloss maskedcrossentropy labelsmoother calloss calculateloss "
        "labelsmoothingcrossentropyloss labelsmoothedcrossentropyloss simplelosscompute "
        "criterion xent xentropy xentloss maskedxent smoothedxent maskedce smoothedce maskednll"
    ),
    "greedy_decoding": (
        "greedydecode greedydecoding greedysearch greedytranslate greedygenerate "
        "greedy decodegreedy greedygeneration greedydecoder greedysearcher greedytranslator "
        "greedysearchdecoder"
    ),
    "beam_search": (
        "beamsearch beamdecode beamdecoding beamsearchdecode beamsearchdecoding beamtranslate "
        "beamsearchtranslate beamsearcher beamdecoder beamsearchdecoder beamgenerate "
        "batchbeamsearch beamtranslator beamsearchtranslator beamsearchgenerate"
    ),
    "sampling": (
        "sample sampling sampler samplelogits samplefromlogits sampletoken samplenexttoken "
        "sampletopk sampletopp sampletopktopp topksampling toppsampling nucleussampling topksample "
        "toppsample topktoppfiltering topktoppfilter topkfiltering topkfilter toppfiltering "
        "toppfilter nucleusfiltering nucleusfilter nucleus filterlogits logitstoprobs "
        "samplewithtemperature"
    ),
    "rotary": (
        "rotary rope rotaryembedding rotaryembeddings rotarypositionalembedding "
        "rotarypositionembedding rotarypositionalembeddings rotarypositionalencoding "
        "rotarypositionencoding rotarypositions rotaryposemb rotaryemb rotaryencoding "
        "rotarypositional ropeembedding precomputefreqscis precomputefreqcis precomputerope "
        "precomputeropeparams computeropeparams applyrope applyrotary applyrotaryemb "
        "applyrotaryembedding applyrotaryposemb applyrotarypositionembedding"
    ),
    "target_mask": "targetmask tgtmask trgmask stdmask decodermask",
}
_COMPONENT = {name: component for component, names in _NAMES.items() for name in names.split()}
_BLOCK = "residualattentionblock"
_USUAL = {
    _BLOCK: "encoder_layer",
    "block": "encoder_layer",
    "layer": "encoder_layer",
    "positions": "positional_encoding",
    "pe": "positional_encoding",
    "sinusoidal": "positional_encoding",
    "sinusoids": "positional_encoding",
    "glu": "feed_forward",
    "gqa": "multi_head_attention",
    "mqa": "multi_head_attention",
    "ce": "loss",
    "nll": "loss",
}
"""The most common meaning of words, used only where the numbers confirm it."""

_AS_ARGUMENT = {
    "selfattn": "multi_head_attention",
    "srcattn": "multi_head_attention",
    "crossattn": "multi_head_attention",
    "attn": "multi_head_attention",
    "encattn": "multi_head_attention",
    "encdecattn": "multi_head_attention",
    "memattn": "multi_head_attention",
    "encoderattn": "multi_head_attention",
    "pff": "feed_forward",
    "pwff": "feed_forward",
    "layer": "encoder_layer",
}
"""Names of arguments that get a module."""

_SHORT_ATTENTION = ("mha", "mqa", "gqa", "mla")
"""Last words that say attention, whose positions the words in front of them may name."""

_ENDS = ("mlp", "ffn", "mha")
"""Last letters that say a component after a prefix in capitals, as in `CLIPMLP`."""

_PLACED_NORMS = {(one, "norm") for one in ("pre", "post", "deep", "sandwich", "peri", "double")}
"""Words that say where the norms of a layer or a block are."""

_MAKES = {"make", "create", "get", "generate", "build", "compute"}
"""The words that the name of a function which makes a mask or a loss begins with."""

_MADE = ("mask", "loss", "crossentropy")
"""The ends of such names."""

_EMPTY = {
    "my",
    "simple",
    "custom",
    "naive",
    "manual",
    "vanilla",
    "basic",
    "own",
    "the",
    "module",
    "v",
}
"""Words that say nothing of what a thing does."""


def component_named(name: str, *, heads: bool = False) -> str:
    """Return the component that code called `name` is, "" where the name says none.

    `heads` says that it is built with a number of heads: "Attention" is then the whole of it.
    """
    found = _COMPONENT.get(squashed(name)) or _COMPONENT.get(_meaning(name), "")
    return "multi_head_attention" if heads and found == "attention" else found


def component_suggested(name: str) -> str:
    """Return the component that the last words of `name` are, "" for none."""
    words = words_of(name)
    ends = ("".join(words[start:]) for start in range(len(words)))
    return next((_COMPONENT[end] for end in ends if end in _COMPONENT), "")


def only_mentions(name: str, component: str) -> bool:
    """Say whether `name` mentions `component` and ends in words for something else.

    `EncoderPooling` does, and `PreNormEncoderBlock` is a block.
    """
    words = [word for word in words_of(name) if word not in _EMPTY]
    if len(words) > 1 and len(words[-1]) == 1 and words[-1] != "d":
        words.pop()  # a version of its class, as `V2`, and no number of dimensions
    ends = {"".join(words[start:]) for start in range(len(words))}
    is_one = ends & {*_COMPONENT, *_USUAL} or (words[-1:] and words[-1].endswith(_ENDS))
    return not is_one and component == component_guessed(name)


def part_named(own: str, side: str = "") -> str:
    """Return the component of the module that the argument `own` gets, "" for no module.

    `side` is "encoder" or "decoder" where that is what is built with it.
    """
    found = component_named(own) or _AS_ARGUMENT.get(squashed(own), "") or _part_in_words(own)
    return f"{side}_layer" if side and found == "encoder_layer" else found


def _part_in_words(own: str) -> str:
    """Return the sublayer in a name that ends as those of modules do: `ff_block`, "" for none."""
    *first, last = words_of(own) or [""]
    stem = "".join(first)
    found = component_named(stem) or ("feed_forward" if stem in ("ff", "ffn", "mlp") else "")
    sublayers = ("attention", "multi_head_attention", "feed_forward")
    return found if last in ("block", "layer", "module", "net") and found in sublayers else ""


_OF_LAYERS = (["layer", "scale"], ["layer", "drop"], ["layer", "dropout"], ["layer", "decay"])
"""Last words of the names of what layers have, and that are none."""


def component_guessed(name: str) -> str:
    """Return the component that some words in a row of `name` are, the most words first.

    "" for none, and for whole models and masks, which no numbers of their own confirm.
    """
    words = words_of(name)
    if not words or words[-1] in ("mask", "masks") or words[-2:] in _OF_LAYERS:
        return ""
    runs = (
        "".join(words[start : start + length])
        for length in range(len(words), 0, -1)
        for start in range(len(words) - length, -1, -1)
    )
    found = _USUAL.get("".join(words), "")
    if "".join(words).endswith(_BLOCK):
        found = _USUAL[_BLOCK]
    found = found or next((_COMPONENT[run] for run in runs if run in _COMPONENT), "")
    if found == "rotary":
        found = _attention_at_end(words) or found
    if not found and squashed(name).endswith("rmsnorm"):  # as in "MyRMSnorm"
        found = "rms_norm"
    if words[-1] in ("layer", "block") and any(one in _PLACED_NORMS for one in pairwise(words)):
        found = "encoder_layer" if found == "layer_norm" else found
    ends = (_COMPONENT[end] for end in _ENDS if words[-1].endswith(end))
    found = found or next(ends, "")  # as in "CLIPMLP"
    found = found or next((_USUAL[word] for word in words if word in _USUAL), "")
    return "" if found == "model" or found.endswith("mask") else found


def _attention_at_end(words: Sequence[str]) -> str:
    """Return the attention that the last of `words` say after others, "" for none.

    So do those before "with", and before "rope" where that is the last word: `SelfAttentionRoPE`.
    """
    if words[-1] in _SHORT_ATTENTION:
        return "multi_head_attention"
    rest = list(words[:-1] if words[-1] in ("layer", "block", "module") else words)
    if joined := [n for n, one in enumerate(rest) if one.endswith("with") and one != "with"]:
        rest = [*rest[: joined[0]], rest[joined[0]].removesuffix("with")]  # "AttentionwithRoPE"
    elif "with" in rest[1:]:
        rest = rest[: rest.index("with", 1)]
    elif end := next((end for end in (["rotary"], ["rope"], ["ro", "pe"]) if _ends(rest, end)), []):
        rest = rest[: -len(end)]
    if "with" in words and rest[-1] in _SHORT_ATTENTION:
        return "multi_head_attention"
    runs = ("".join(rest[start:]) for start in range(len(rest)))
    found = next((_COMPONENT[run] for run in runs if run in _COMPONENT), "")
    return found if found in ("attention", "multi_head_attention") else ""


def _ends(words: Sequence[str], end: Sequence[str]) -> bool:
    """Say whether `words` end in those of `end`, after others."""
    return len(words) > len(end) and list(words[-len(end) :]) == list(end)


def squashed(name: str) -> str:
    """Return `name` without underscores, in lower case, and without the axes behind it: x_BLD."""
    if "_" in name and not name.islower():
        name = _AXES.sub("", name)
    return name.replace("_", "").lower()


_AXES = re.compile(r"(?<=[a-z0-9])_[BTLSNM][A-Z]{1,4}[0-9]?$")
"""The axes of an array at the end of its name, one letter each: the batch or positions first."""


_OF_TURNS = {
    *("half", "halves", "pair", "pairs", "interleaved", "adjacent", "neox", "gptj", "llama", "hf"),
    *("complex", "real", "split", "torch"),
}
"""Words of the names of rotary positions that say a convention or an arithmetic."""


def _meaning(name: str) -> str:
    words = words_of(name)
    empty = {*_EMPTY, *_MAKES} if squashed(name).endswith(_MADE) else _EMPTY
    empty = empty | _OF_TURNS if {"rope", "rotary"} & {*words} else empty
    return "".join(word for word in words if word not in empty)


def words_of(name: str) -> list[str]:
    """Return the words of a name with underscores or capitals, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


_SIDES = {
    "source": {"src", "source", "enc", "encoder", "encode", "encoders"},
    "target": {"tgt", "trg", "target", "dec", "decoder", "decode", "decoders"},
}


def side_named(name: str) -> str:
    """Return the side of a model, source or target, that the words of a name say.

    "" for none or both.
    """
    found = [side for side, marks in _SIDES.items() if marks & {*words_of(name)}]
    return found[0] if len(found) == 1 else ""


def takes_two_sides(thing: Any) -> bool:
    """Say whether the names of what a class is called with are those of a source and a target."""
    try:
        own = [*inspect.signature(thing.forward).parameters]
    except (AttributeError, TypeError, ValueError):
        return False
    tokens = [one for one in own if not re.search(r"(?i)mask|len|pad|pos|type|seg|out|state", one)]
    return {side_named(one) for one in tokens} >= {"source", "target"}


def only_candidate(target: str, module: ModuleType) -> str:
    """Return the one name in `module` that says a component; Unclear for none or several."""
    own = [name for name, _ in definitions(module)]
    found = [name for name in own if component_named(name)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join([*own[:_LISTED], *[".."] * (len(own) > _LISTED)])
    raise Unclear(
        f"{target} holds {listed or 'no function and no class'}. Say which of them to judge with "
        f"{target}:NAME{'' if found else ', and with --as COMPONENT what it is'}; attentest check "
        f"{target} judges all that it recognises."
    )


_LISTED = 20
"""The largest number of names that are listed of a file."""
