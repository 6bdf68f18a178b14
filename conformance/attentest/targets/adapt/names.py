"""The names that people give to arguments, underscores and capitals apart."""

from collections.abc import Mapping, Sequence
from typing import Any


def _words(text: str) -> Sequence[str]:
    return tuple(text.split())


ROLES: Mapping[str, Sequence[str]] = {
    "query": _words("q query queries qs xq qstate querystates qin inputq xquery"),
    "key": _words("k key keys ks xk kstate keystates kin inputk xkey"),
    "value": _words("v value values vs val vals xv vstate valuestates vin inputv xvalue"),
    "mask": _words(
        "mask attnmask attentionmask attmask m srcmask amask keepmask keymask masks "
        "keypaddingmask srckeypaddingmask paddingmask padmask validmask attnbias attentionbias "
        "valid keep allowed visible hide blocked isvisible mayattend canattend attendable"
    ),
    "x": _words(
        "x tgt trg target src source inp input inputs hidden hiddenstates h seq embedded "
        "embeddings xs features sequence decinput decinputs data tensor y "
        "decoderinput decoderinputs"
    ),
    "tokens": _words(
        "tokens ids inputids tokenids idx indices x inputs input seq src tgt trg target text"
    ),
    "pad": _words("pad padidx padid padtoken paddingidx padtokenid padvalue"),
    "length": _words("length size seqlen sz n t len l seqlength tgtlen"),
    "memory": _words(
        "memory mem encout encoutput encoutputs encoderoutput encoderoutputs enc encoded "
        "encoderhiddenstates context crossinput encsrc encoderrepresentation "
        "encoderrepresentations encodings encoderstates"
    ),
    "source_mask": _words(
        "srcmask sourcemask memorymask encmask crossmask crossattnmask encdecmask "
        "encoderattentionmask encodermask srcpadmask decencattnmask"
    ),
    "target_mask": _words(
        "tgtmask trgmask targetmask lookaheadmask causalmask selfmask selfattnmask decmask "
        "decodermask decselfattnmask attnmask mask"
    ),
    "source": _words(
        "src source srctokens encinput encinputs inputids x input encoderinput srcids"
    ),
    "target": _words(
        "tgt trg target tgttokens decinput decinputs decoderinputids decoderinput y tgtids"
    ),
    "sublayer": _words("sublayer layer fn f func module sublayerfn net"),
}
"""What carries an input of the contract, the strongest name first."""

ONE_INPUT = _words(
    "x inp input inputs hidden hiddenstates h seq src embedded embeddings xs y inputtensor "
    "inputtensors tensor features sequence data"
)
"""What carries the one input of self-attention."""

CONTEXT = _words("context memory kv keyvalue mem encout encoderoutput y cond xa")
"""What carries keys and values beside it."""

PADDING = _words("keypaddingmask srckeypaddingmask paddingmask padmask")
"""A second mask, which says what is no key at all."""

SEGMENTS = _words(
    "segments segmentinfo segmentids segmentids segmentlabel segmentlabels segment tokentypeids "
    "tokentypes tokentype typeids sentencelabel seg tokentypeid"
)
"""Ids that say to which of two sequences a token belongs."""

KEY_WIDTH = _words("dk headdim dhead headsize keydim")
"""What gets the width of a key."""

OTHER = _words("scale temperature generator")
"""Optional arguments of attention that are certainly no mask."""

OFF = {
    "dropout": None,
    "dropoutp": 0.0,
    "p": 0.0,
    "dropoutrate": 0.0,
    "training": False,
    "device": "cpu",
    "dtype": None,
}
"""What says nothing of what is computed, with a value that switches it off."""

WIDTH = _words(
    "dmodel embeddim embedsize hiddensize nembd dim embdim embeddingdim embeddingsize d width "
    "modeldim modelsize dimmodel features normalizedshape numhiddens nhid inputdim inputsize "
    "infeatures indim emsize embsize hiddendim numfeatures ndim nstate outputdim outputsize "
    "outfeatures kdim vdim keysize querysize valuesize size emb demb embed hidden hiddenwidth "
    "nfeat idim nout numchannels channels inchannels outchannels dtoken tokendim "
    "nunits units outdim encoderembeddim decoderembeddim"
)
"""The width of the model, input and output widths included."""

INNER = _words(
    "dff dimfeedforward ffdim ffndim dinner innerdim mlpdim intermediatesize ffnhidden ffsize "
    "ffnnumhiddens dhidden dhid ffhidden dimff pfdim hiddenfeatures ffnhiddensize "
    "feedforwarddim dmlp hidden hiddendim hiddensize hiddenlayersize hiddenwidth "
    "feedforwardhidden feedforwardsize ffnembeddim intermediatewidth intermediatedim "
    "hiddenunits dimlinearblock hiddenchannels ffnintermediatesize ffnwidth encoderffndim "
    "decoderffndim encoderffnembeddim decoderffnembeddim ninner innersize dunits dimhidden "
    "ffinnerdim inner"
)
"""The inner width of a feed-forward network; some are the model's where no other name is."""

SIZES: Mapping[str, Sequence[str]] = {
    "d_ff": INNER,
    "d_model": WIDTH,
    "heads": _words(
        "heads numheads nheads nhead h numattentionheads head attentionheads attnheads "
        "numattnheads numkvheads nkvheads kvheads numkeyvalueheads nkvhead encoderattentionheads "
        "decoderattentionheads encoderheads decoderheads encheads decheads headnum headskv"
    ),
    "layers": _words(
        "layers numlayers nlayers nlayer n depth numencoderlayers numdecoderlayers nblocks "
        "numblocks numhiddenlayers nx blocks encoderlayers decoderlayers nencoderlayers "
        "ndecoderlayers enclayers declayers numenclayers numdeclayers encdepth decdepth"
    ),
    "max_length": _words(
        "maxlen maxlength maxseqlen maxseqlength maxpositionembeddings blocksize contextlength "
        "seqlen ctxlen nctx maxpositions numpositions maxsequencelength npositions "
        "sequencelength maxtokens contextsize"
    ),
    "source_vocabulary": _words(
        "vocab vocabsize numembeddings nvocab srcvocab srcvocabsize sourcevocabsize "
        "inputvocabsize nsrcvocab ntoken ntokens vocabulary srcvocabulary encvocabsize "
        "encodervocabsize vocabularysize"
    ),
    "target_vocabulary": _words(
        "tgtvocab tgtvocabsize trgvocab trgvocabsize targetvocabsize outputvocabsize ntrgvocab "
        "tgtvocabulary decvocabsize decodervocabsize"
    ),
    "source_pad": _words("padidx paddingidx srcpadidx padtokenid padid srcpad sourcepad"),
    "target_pad": _words("tgtpadidx trgpadidx tgtpad targetpad"),
    "dropout": _words(
        "dropout p drop dropoutrate dropoutp attndrop attndropout residpdrop dropprob pdrop "
        "attentiondropout activationdropout reludropout residdropout projdrop ffndropout pdropout "
        "dropoutprob attndropoutprob attnpdrop residualdropout hiddendropoutprob "
        "attentionprobsdropoutprob"
    ),
}
"""What a constructor calls each size of the contract."""

HEAD_WIDTH = _words(
    "dk dv dq dkv headdim dimhead headsize dhead dimperhead dimk dimv dkey dvalue attentionheaddim"
)
"""The width of one head."""

RATIO = _words("mlpratio forwardexpansion expansion expansionfactor ffmult mult ffnratio ratio")
"""The inner width of a feed-forward network as a multiple of the model's."""

CONFIGURATION = _words(
    "config cfg conf c configuration args hparams hps params opt opts options settings modelargs "
    "modelconfig hyperparameters"
)
"""Names of an object that holds all settings."""

REQUIRED: Mapping[str, Any] = {
    **dict.fromkeys(_words("bias usebias qkvbias attentionbias mlpbias attnbias"), True),
    **dict.fromkeys(
        _words(
            "usegate gated useglu glu isdecoder addcrossattention usecache outputattentions "
            "outputhiddenstates returndict"
        ),
        False,
    ),
    **dict.fromkeys(_words("chunksizefeedforward"), 0),
    **dict.fromkeys(_words("device"), "cpu"),
    **dict.fromkeys(_words("positionembeddingtype"), "absolute"),
    **dict.fromkeys(_words("eps epsilon layernormeps layernormepsilon normeps lneps"), 1e-5),
}
"""Usual values of required arguments: every value is judged by the same formula."""

AT_CALLS = {"_attn_implementation": "eager"}
"""Fields of a configuration that are read when a module is called, and not when it is built."""

ACTIVATION = _words(
    "activation act activationfn actfn activationfunction hiddenact hiddenactivation"
)
"""Names of a required activation, which gets ReLU, by its name or as a function."""

OF_CHOICES = (
    *ACTIVATION,
    *_words(
        "normfirst prenorm postnorm preln postln normbefore normalizebefore normposition "
        "normplacement layernormfirst dolayernormbefore"
    ),
)
"""Arguments that select among formulas of the spec: where one is wrong, another excuses nothing."""

ON = {"batchfirst": True}
"""Switches that bring code to the contract's conventions."""
