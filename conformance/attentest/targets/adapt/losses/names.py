"""Names of the sizes and inputs of a loss, as published code gives them."""

from collections.abc import Mapping

from attentest.targets.adapt.names import words

LOSS_SIZES: Mapping[str, str] = {
    **dict.fromkeys(
        words(
            "size vocab vocabsize numclasses nclasses nclass classes tgtvocab tgtvocabsize "
            "trgvocabsize targetvocabsize outputsize outputdim ntoken vocabularysize vocabulary "
            "tgtvocabulary numwords nvocab"
        ),
        "target_vocabulary",
    ),
    **dict.fromkeys(
        words(
            "pad padidx padid padindex padtoken padtokenid paddingidx paddingid ignoreindex "
            "ignoreid ignoreidx targetpad trgpad tgtpad trgpadidx tgtpadidx padvalue"
        ),
        "target_pad",
    ),
    **dict.fromkeys(
        words(
            "smoothing smoothingvalue labelsmoothing epsilon eps ls lsr smooth smoothingrate alpha "
            "labelsmoothingfactor smoothingfactor lsmoothing"
        ),
        "smoothing",
    ),
}
"""Names of the sizes of a loss, when it is built or called."""

LOSS_NUMBER = words(
    "ntokens numtokens norm normalizer normaliser n numitemsinbatch ntok denom denominator count"
)
"""Names of the argument that gets the number of targets that count, at a call."""

LOSS_LENGTHS = words(
    "lengths lens targetlengths tgtlengths trglengths targetlens tgtlens seqlengths"
)
"""Names of the argument that gets the number of targets in each row, at a call."""

LOSS_MASK = words("mask lossmask padmask paddingmask targetmask tgtmask weights weight keep valid")
"""Names of the mask of the targets that count, at a call."""
