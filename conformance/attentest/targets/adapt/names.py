"""The names that people give to arguments, underscores and capitals apart."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from attentest.targets.adapt.components import squashed


def words(text: str) -> Sequence[str]:
    """Return the words of `text`."""
    return tuple(text.split())


MASKS = ("mask", "source_mask", "target_mask")
"""The inputs of the contract that are masks."""

ROLES: Mapping[str, Sequence[str]] = {
    "query": words("q query queries qs xq qstate querystates qin inputq xquery inputsq"),
    "key": words("k key keys ks xk kstate keystates kin inputk xkey"),
    "value": words("v value values vs val vals xv vstate valuestates vin inputv xvalue"),
    "mask": words(
        "mask attnmask attentionmask attmask m srcmask amask keepmask keymask masks keypaddingmask "
        "srckeypaddingmask paddingmask padmask validmask attnbias attentionbias valid keep allowed "
        "visible hide blocked isvisible mayattend canattend attendable allow ok permitted hidden "
        "bias"
    ),
    "x": words(
        "x tgt trg target src source inp input inputs hidden hiddenstates h seq embedded "
        "embeddings xs features infeatures sequence decinput decinputs data tensor y "
        "decoderinput decoderinputs"
    ),
    "tokens": words(
        "tokens ids inputids tokenids idx indices x inputs input seq src tgt trg target text"
    ),
    "pad": words("pad padidx padid padtoken paddingidx padtokenid padvalue"),
    "length": words("length size seqlen sz n t len l seqlength tgtlen"),
    "memory": words(
        "memory mem encout encoutput encoutputs encoderoutput encoderoutputs enc encoded "
        "encoderhiddenstates context crossinput encsrc encoderrepresentation "
        "encoderrepresentations encodings encoderstates memories encodermemory encoderinput "
        "encoderinputs src source"
    ),
    "source_mask": words(
        "srcmask sourcemask memorymask encmask crossmask crossattnmask encdecmask "
        "encoderattentionmask encodermask srcpadmask decencattnmask paddingmask padmask"
    ),
    "target_mask": words(
        "tgtmask trgmask targetmask lookaheadmask causalmask selfmask selfattnmask decmask "
        "maskedselfattnmask decodermask decselfattnmask attnmask mask"
    ),
    "source": words(
        "src source srctokens encinput encinputs srcinputids srctokenids sourceinputids sourceids "
        "encoderinputids encinputids inputids x input encoderinput srcids xspad xs "
        "srcseq sourceseq sourcetokens srctoken srctext sourcetext sourcesequence srcsequence "
        "srcinput srcinputs sourceinput sourceinputs encoderinputs"
    ),
    "target": words(
        "tgt trg target tgttokens decinput decinputs decoderinputids decoderinput y tgtids "
        "tgtinputids tgttokenids trginputids trgids targetinputids targetids decinputids "
        "targets label labels real gold golds ytrue truth words trgy tgty reference ysinpad yspad "
        "ysin ys tgtseq trgseq targetseq targettokens trgtokens tgttext targettext "
        "targetsequence tgtinput trginput targetinput targetinputs decoderinputs"
    ),
    "output": words(
        "output outputs logits logit pred preds prediction predictions x input inputs logprobs "
        "logprobabilities logp lprobs scores yhat ypred probs probabilities out hypothesis"
    ),
    "sublayer": words("sublayer layer fn f func module sublayerfn net"),
}
"""Names that carry an input of the contract, the strongest first."""

ONE_INPUT = words(
    "x inp input inputs hidden hiddenstates h seq src embedded embeddings xs y inputtensor "
    "inputtensors tensor features infeatures sequence data tokens"
)
"""Names that carry the one input of self-attention."""

CONTEXT = words(
    "context memory kv keyvalue keyvalues mem encout encoderoutput y cond xa xkv inputskv inputkv"
)
"""Names that carry keys and values next to it."""

TARGET = words("tgt trg target")
SOURCE = words("src source")
"""Names of queries, and of keys and values, where both are given."""

PADDING = words("keypaddingmask srckeypaddingmask paddingmask padmask")
"""A second mask, which says what is no key at all."""

SEGMENTS = words(
    "segments segmentinfo segmentids segmentids segmentlabel segmentlabels segment tokentypeids "
    "tokentypes tokentype typeids sentencelabel seg tokentypeid segids segid segs seglabels "
    "seglabel seginfo segmentid segmenttokens segmentinput sentenceids sentids inputseg "
    "inputsegment inputsegments segmenttokenids sentencetype sentencetypes segmenttensor"
)
"""Ids that say to which of two sequences a token belongs."""

KEY_WIDTH = words("dk headdim dhead headsize keydim")
"""Names that get the width of a key."""

OTHER = words("scale temperature generator")
"""Optional arguments of attention that are certainly no mask."""

OFF = {
    "dropout": None,
    "dropoutp": 0.0,
    "p": 0.0,
    "dropoutrate": 0.0,
    "training": False,
    "device": "cpu",
    "dtype": None,
    **dict.fromkeys(words("isinfer isinference inference isinfering infer"), False),
    **dict.fromkeys(words("startpos startposition startindex"), 0),
}
"""Names that say nothing of the computation, with a value that switches each off."""

WIDTH = words(
    "dmodel embeddim embedsize hiddensize nembd dim embdim embeddingdim embeddingsize d width "
    "modeldim modelsize dimmodel features normalizedshape numhiddens nhid ninp inputdim inputsize "
    "infeatures indim emsize embsize hiddendim numfeatures ndim nstate outputdim outputsize "
    "outfeatures kdim vdim keysize querysize valuesize size emb demb embed hidden hiddenwidth "
    "nfeat idim nout hiddenunits numchannels channels inchannels outchannels dtoken tokendim "
    "embeddingwidth embedwidth embdsize embddim embdwidth embd embeddeddim embedsz dembd nummodel "
    "depthatt depthout depthkeyvalue numqinputchannels numkvinputchannels featdim nchannels din "
    "dout dinput doutput nembed nfeatures nhidden embeddingdimension modeldimension nunits units "
    "outdim encoderembeddim decoderembeddim encoderdim decoderdim embeddingdims embeddingsdims "
    "querydim contextdim dimensionality attentiondim dhid encodingdim e embeddingssize "
    "embeddingsdim dcross crossdim dcontext normshape ffnnuminput ffnnuminputs hidinfeatures "
    "mlminfeatures nspinfeatures parametersshape parametershape paramshape featureshape kvdim qdim "
    "dimin dimout numunits"
)
"""The width of the model, input and output widths included."""

INNER = words(
    "dff dimfeedforward ffdim ffndim dinner innerdim mlpdim intermediatesize ffnhidden ffsize nhid "
    "ffnnumhiddens dhidden dhid ffhidden dimff pfdim hiddenfeatures ffnhiddensize "
    "feedforwarddim dmlp hidden hiddendim hiddensize hiddenlayersize hiddenwidth "
    "feedforwardhidden feedforwardsize ffnembeddim intermediatewidth intermediatedim "
    "hiddenunits dimlinearblock hiddenchannels ffnintermediatesize ffnwidth encoderffndim "
    "decoderffndim encoderffnembeddim decoderffnembeddim ninner innerunits innersize dunits "
    "dimhidden diminner ffnsize nhidden ffinnerdim inner feedforwarddimension nstate numff "
    "mlpmidsize intermediatefeatures ffndimension nmlphidden mlpsize mlpwidth mlphidden filtersize "
    "mlphiddendim linearunits eunits dinnerhid innerhid feedforwardnumhidden ffnumhidden "
    "numhiddenff dffn mlpunits moeintermediatesize moeinterdim moeintermediatedim midsize middim "
    "ffnintermediate ffintermediate mlpintermediate "
    "expandsize expansionsize expandedsize expandeddim expandedwidth"
)
"""The inner width of a feed-forward network; some are the model's where no other name is."""

WINDOW = words(
    "window windowsize windowlength windowlen slidingwindow slidingwindowsize slidingwindowlen "
    "attentionwindow attnwindow attentionwindowsize attnwindowsize localwindow localwindowsize"
)
"""The number of positions that attention with a sliding window sees."""

LENGTH = words(
    "nposition npositions length seqlen maxlen maxlength npos maxseqlen numpositions position t l n"
)
"""The number of rows of a table of positions that a function makes."""

KEY_HEADS = words(
    "numkvheads nkvheads kvheads numkeyvalueheads nkeyvalueheads nkvhead headskv numkvhead nkv kvh "
    "nquerygroups numquerygroups numkvgroups nkvgroups numgroups ngroups numheadskv nheadskv "
    "noofkvheads gqakvheads gqakvhead numkvattentionheads"
)
"""The number of heads of keys and values; for all but attention it is that of the heads."""

SIZES: Mapping[str, Sequence[str]] = {
    "d_ff": INNER,
    "d_model": WIDTH,
    "heads": words(
        "heads numheads nheads nhead nh h numattentionheads head attentionheads attnheads "
        "numattnheads numqueryheads nqueryheads numkvheads nkvheads kvheads numkeyvalueheads "
        "nkvhead numberofheads nbheads encoderattentionheads decoderattentionheads encoderheads "
        "decoderheads encheads decheads headnum headskv queryheads headsq nattentionheads "
        "numqheads nqheads qheads numqhead nqhead numheadsq nheadsq noofheads noofqheads "
        "numattheads nattheads attheads nattnheads headcount headscount nbhead numhead headsnum "
        "nbofheads nbrheads"
    ),
    "layers": words(
        "layers numlayers nlayers nlayer n depth numencoderlayers numdecoderlayers nblocks "
        "numblocks numhiddenlayers nx blocks encoderlayers decoderlayers nencoderlayers "
        "ndecoderlayers enclayers declayers numenclayers numdeclayers encdepth decdepth "
        "numencoderblocks numdecoderblocks encoderblocks decoderblocks nencoderblocks "
        "ndecoderblocks encodelayers decodelayers nenclayers ndeclayers nenclayer ndeclayer "
        "encoderlayer decoderlayer numencoder numdecoder nencoder ndecoder numblks nblks blks "
        "nooflayers noofblocks noofencoderlayers noofdecoderlayers nhiddenlayers nblayers nblayer "
        "nbblocks nbrlayers nbrblocks nbrencoderblocks numblock numlayer"
    ),
    "max_length": words(
        "maxlen maxlength maxseqlen maxseqlength maxpositionembeddings blocksize contextlength "
        "seqlen ctxlen nctx maxpositions numpositions maxsequencelength npositions "
        "sequencelength maxtokens contextsize contextlen maximumlength maximumpositionembeddings "
        "maxt tmax maxtimesteps qlen lenseq lensequence lengthseq lenmax lencontext maxlenseq "
        "maxcontextlength maxcontextlen maxcontextsize maxcontext maxctx maxctxlen maxpos padsize"
    ),
    "source_vocabulary": words(
        "vocab vocabsize numembeddings nvocab srcvocab srcvocabsize sourcevocabsize "
        "inputvocabsize nsrcvocab ntoken ntokens vocabulary srcvocabulary encvocabsize "
        "encodervocabsize vocabularysize vocabsizeorconfigjsonfile svocabsize invocabsize "
        "sourcevocabularysize sourcevocabulary srcvocabularysize npieces numpieces"
    ),
    "target_vocabulary": words(
        "tgtvocab tgtvocabsize trgvocab trgvocabsize targetvocabsize outputvocabsize ntrgvocab "
        "tgtvocabulary decvocabsize decodervocabsize tvocabsize outvocabsize "
        "targetvocabularysize targetvocabulary tgtvocabularysize"
    ),
    "source_pad": words(
        "padidx paddingidx srcpadidx padtokenid padid srcpad sourcepad padindex padtokenindex "
        "paddingindex"
    ),
    "target_pad": words("tgtpadidx trgpadidx tgtpad targetpad"),
    "experts": words(
        "experts numexperts nexperts numlocalexperts nroutedexperts numroutedexperts nexpert "
        "numexpert numberofexperts expertcount expertnum moenumexperts routedexperts nbexperts "
        "numtotalexperts totalexperts"
    ),
    "chosen_experts": words(
        "topk numexpertspertok numexpertspertoken nexpertspertok nexpertspertoken expertspertoken "
        "expertspertok nactivatedexperts numactivatedexperts nactiveexperts numactiveexperts "
        "activeexperts activatedexperts numselectedexperts numselected selectedexperts "
        "numselects k moetopk topkexperts expertsperstep chosenexperts numchosen usedexperts "
        "nexpertsused nexpertused numexpertsused nexpertpertoken nexpertpertok"
    ),
    "bias_buckets": words(
        "numbuckets nbuckets buckets numrelativebuckets relativebuckets relnumbuckets "
        "relativeattentionnumbuckets relativepositionbuckets relativepositionnumbuckets "
        "relativenumbuckets numrelbuckets relbuckets relativebucketcount biasbuckets"
    ),
    "bias_distance": words(
        "maxdistance relmaxdistance relativeattentionmaxdistance relativemaxdistance "
        "relativepositionmaxdistance relmaxdist maxrelativedistance maxreldistance"
    ),
    "dropout": words(
        "dropout p drop dropoutrate dropoutp attndrop attndropout residpdrop dropprob pdrop "
        "attentiondropout activationdropout reludropout residdropout projdrop ffndropout pdropout "
        "drate dropoutprob attndropoutprob attnpdrop residualdropout hiddendropoutprob "
        "attentionprobsdropoutprob attnp residp ffp embdp"
    ),
}
"""Names of the sizes of the contract in constructors."""

ITEMS = words("numitems nitems itemnum nitem numitem itemcount itemsnum")
"""The number of things whose ids an encoder of recommendations takes."""

LETTERS_OF_BERT: Mapping[str, str] = {
    "l": "layers",
    "h": "d_model",
    "a": "heads",
    "v": "source_vocabulary",
}
"""The sizes that the paper of BERT calls by letters: H and A together say that they are these."""

OF_EXPERTS = ("experts", "chosen_experts")
"""The sizes of a mixture of experts: in other components the words have other meanings."""

SHARED_INNER = words(
    "sharedexpertintermediatesize sharedintermediatesize sharedinner sharedhidden sharedhiddendim "
    "sharedhiddensize sharedff dffshared shareddff sharedexpertdim sharedexperthiddendim "
    "sharedexpertdff sharedffndim sharedexpertinner"
)
"""The inner width of a shared expert."""

BATCH_PADS: Mapping[str, str] = {
    **dict.fromkeys(
        words("pad padidx padid padtoken padtokenid tgtpad trgpad tgtpadidx trgpadidx targetpad"),
        "target_pad",
    ),
    **dict.fromkeys(words("srcpad srcpadidx sourcepad srcpadid"), "source_pad"),
}
"""Names of the pad ids of a batch; one alone is that of both sides."""

BATCH_RESULTS: Mapping[str, Sequence[str]] = {
    "input of the decoder": words(
        "tgtin trgin tgtinput trginput decoderinput decinput targetinput decoderinputids tgtinp "
        "trg tgt"
    ),
    "target of the decoder": words(
        "trgy tgty tgtout trgout tgtoutput trgoutput labels targetoutput decodertarget targety "
        "gold tgtlabels target"
    ),
    "source mask": words(
        "srcmask sourcemask encodermask srcpaddingmask srcpadmask encmask srckeypaddingmask"
    ),
    "target mask": words("trgmask tgtmask targetmask decodermask decmask"),
    "number of targets": words("ntokens numtokens ntok ntargets numtargets count"),
}
"""Names of the results of a batch, in the order of the contract."""

HEAD_WIDTH = words(
    "dk dv dq dkv headdim dimhead headsize dhead dimperhead dimk dimv dkey dvalue attentionheaddim "
    "attndimhead attnheaddim headfeatures nembdperhead embdperhead dimsperhead headdims "
    "querypreattnscalar dimkeys dimvalues dimkey dimvalue qkdim dqk dimqk headwidth "
    "dqueries dkeys dvalues dquery dimqueries dimquery keydimension valuedimension"
)
"""The width of one head, or what the scores of one are divided by the root of."""

TEMPERATURE = words("temperature")
"""Names of the divisor of the scores, where its caller says it."""

RATIO = words(
    "mlpratio forwardexpansion expansion expansionfactor ffmult mult ffnratio ratio wideningfactor "
    "ffnmult mlpmult ffexpansion ffnexpansion expansionratio ffratio mlpexpansion multiplier "
    "ffmultiplier ffnmultiplier mlpmultiplier hiddenmultiplier expandratio forwardmul ffmul mlpmul "
    "mlpdimratio feedforwardexpansionfactor ffdimratio hiddenratio hiddendimratio mlpdimmult "
    "dffscale ffscale ffnscale mlpscale dffratio dffmult dffmultiplier ffscalefactor expansionscale"
)
"""The inner width of a feed-forward network as a multiple of the model's."""

CONFIGURATION = words(
    "config cfg conf c configuration args hparams hps params opt opts options settings modelargs "
    "modelconfig hyperparameters hp hyperparams modelcfg modelparams"
)
"""Names of an object that holds all settings."""

EPSILON = words(
    "eps epsilon epsvalue layernormeps layernormepsilon normeps lneps rmsnormeps epsilonvalue "
    "rmseps rmsepsilon rmsnormepsilon normepsilon lnepsilon varianceepsilon normalizationeps"
)
"""The epsilon of a norm."""

LAYER_INDEX = words(
    "layeridx layerid layerindex blockidx blockindex layernumber layerno idx layernum blockid "
    "blocknumber i index"
)
"""The number of a layer in its stack, which is the first one, also where its default is None."""

REQUIRED: Mapping[str, Any] = {
    **dict.fromkeys(words("bias usebias qkvbias attentionbias mlpbias attnbias"), True),
    **dict.fromkeys(
        words(
            "usegate gated useglu glu isdecoder addcrossattention usecache outputattentions "
            "outputhiddenstates returndict vis visualize visualise"
        ),
        False,
    ),
    **dict.fromkeys((*LAYER_INDEX, "chunksizefeedforward"), 0),
    **dict.fromkeys(words("ffndimmultiplier dtype"), None),
    "device": "cpu",
    **dict.fromkeys(words("initializerrange initrange initstd initializerstd stddev"), 0.02),
    **dict.fromkeys(words("ropetheta ropebase rotarybase rotarytheta thetabase theta"), 10_000.0),
    **dict.fromkeys(words("nsegments numsegments segmentsize nsegs typevocabsize ntypes"), 2),
    **dict.fromkeys(words("maxnumsegments nseg segsize numseg numsegs nsegment numsegment"), 2),
    **dict.fromkeys(words("segmentvocabsize segvocabsize numtokentypes"), 2),
    "positionembeddingtype": "absolute",
    "attnimplementation": "eager",
    **dict.fromkeys(EPSILON, 1e-5),
}
"""Usual values of required arguments: every value is judged by the same formula."""

NORM_FACTORIES = words(
    "normlayer normfactory normclass normcls normfn normbuilder normalizationlayer "
    "normalizationclass normalizationcls layernormclass layernormcls layernormfactory"
)
"""Names of the function or the class that makes the norms of a layer, of their width."""

CLASSES = words(
    "numclasses nclasses nclass classes numlabels nlabels numclass labels nbclasses nbclass "
    "nbrclasses outclasses numberclasses numberofclasses numofclasses noofclasses nbofclasses "
    "numcls clsnum classnum numcategory numcategories categorynum labelnum labelsize numtags ntags "
    "tagsetsize tagsize numentities numrelations numintents numslots numemotions numoutputs "
    "noutputs noutput numout outputlen outlen outputlength predlen predlength predictionlength "
    "horizon predictionlen forecasthorizon forecastlength forecastlen predictionhorizon stepsahead "
    "nstepsout numtargets ntargets outputfeatures predictedfeatures numpredictedfeatures"
)
"""The number of classes, tags or steps that the head of an encoder gives: heads are not judged."""

AT_CALLS = {"_attn_implementation": "eager"}
"""Fields of a configuration that are read when a module is called, and not when it is built."""

ACTIVATION = words(
    "activation act activationfn actfn activationfunction hiddenact hiddenactivation acttype "
    "activationtype activationname actlayer activationlayer nonlinearity activationfunctionstring "
    "actfunc activationfunc ffnactivation mlpactivation denseactfn ffnactfn mlpactfn expertact "
    "expertactivation expertactfn mlpact ffnact ffact ffactivation"
)
"""Names of a required activation, which gets ReLU, by its name or as a function."""

OF_CHOICES = (
    *ACTIVATION,
    *words(
        "normfirst prenorm postnorm preln postln normbefore normalizebefore normposition "
        "normplacement layernormfirst dolayernormbefore"
    ),
)
"""Arguments that select among formulas of the spec: where one is wrong, another excuses nothing."""

BATCHES = dict.fromkeys(words("maxbatchsize maxbatch maxbsz maxbs"), 64)
ON = {"batchfirst": True, "multipleof": 1, **BATCHES}
"""Settings that bring code to the contract's conventions, and leave its sizes as they are."""


_TURNS = re.compile(r"rope|rotary|freqs|cos|sin$|positionemb")
"""The beginning of names of arguments that carry rotary positions."""


def turns(own: str) -> bool:
    """Say whether an argument carries rotary positions by its name."""
    return _TURNS.match(squashed(own)) is not None
