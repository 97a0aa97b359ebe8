"""Statements about the controlled study's main table, decomposition and curves."""

from __future__ import annotations

from toptail_paper.claims.controlled_decisions import (
    FAILS,
    HEADS,
    HERE,
    INSIDE,
    MATERIAL,
    MOST,
    NEAR_ORACLE,
    NORM_REMOVED,
    SUPPORT_REMOVED,
    base_rate,
    change,
    cosine_less_severe,
    first,
    in_seeds,
    largest_k,
    last,
    main,
    mean_norms,
    multiple,
    norms_beside,
    other_norms_fall,
    readout_control,
    representative_run,
    smallest_rise,
    sum_nearly_identical,
    training_length,
)
from toptail_paper.claims.criteria import (
    HALF,
    ZERO,
    Criterion,
    Words,
    above,
    at_least,
    at_most,
    below,
    between,
    listed,
    short_by_at_most,
)
from toptail_paper.claims.ledger import Claim
from toptail_paper.claims.numbers import Numbers, paired, ratio, seed_curve
from toptail_paper.claims.reported import BOUNDED, CONTRASTIVE, CRITICS, RANKERS, TDQ
from toptail_paper.claims.sweeps import Swept

# fmt: off
MAIN: tuple[Claim, ...] = (
    Claim("norm-drift",
          "A controlled support decomposition attributes most raw bilinear regret to norm drift.",
          "abstract",
          Swept(Criterion(NORM_REMOVED.called("Shares removed").given(SUPPORT_REMOVED), HERE, MOST,
                          "the share of the regret on the same pools that each way of taking the "
                          "norm out of play removes is {condition}", shown="first", digits=".0%",
                          beside=(listed(SUPPORT_REMOVED, ".0%"),),
                          differ="the way of taking the norm out"), ("raw",))),
    Claim("bounded-off-support",
          "Cosine and hybrid critics nevertheless select off-support actions from most pools "
          "…", "abstract",
          Swept(Criterion(main("off_support", BOUNDED), HERE, MOST,
                          "the share of the pools, mean over seeds, is {condition}", digits=".0%",
                          beside=(in_seeds(main("off_support", BOUNDED), MOST), base_rate)),
                BOUNDED)),
    Claim("bounded-comparable-regret",
          "… and incur comparable regret.", "abstract",
          Swept(Criterion(ratio(main("regret", BOUNDED), main("regret", ("raw",)),
                                "As a multiple of raw"), HERE, between(HALF, Words(2.0, "twice")),
                          "mean regret {condition} raw's", digits=".2f",
                          beside=(listed(main("regret", CONTRASTIVE).called("Regret"), ".2f"),)),
                CONTRASTIVE)),
    Claim("selection-costs",
          "[There are] single-step selection costs on … the exact-Q* toy.", "abstract",
          Swept(Criterion(paired(main("regret", CONTRASTIVE), main("regret", TDQ), ""), HERE,
                          above(ZERO),
                          "Criterion: regret less TD-Q's, seed by seed, is {condition}. The number "
                          "is the smallest difference, {shown}'s."), CRITICS)),
    Claim("below-cap",
          "Our failures occur below the cap.", "sec:intro",
          Swept(Criterion(main("selected_score", BOUNDED).called("Selected scores"), HERE,
                          at_most(0.9),
                          "mean selected score {condition}, the line the paper draws on OGBench"),
                BOUNDED)),
    Claim("mixed-pools",
          "Clipped Gaussian candidate pools contain actions from both inside and outside the "
          "disk.", "sec:toy-support",
          Criterion(seed_curve("off_support", ("raw",), first, "both sides"), HERE,
                    between(0.05, 0.95),
                    "Criterion: the share of all candidates that are off support ({spelled}) is "
                    "{condition:%}. The proposal puts exp(−1/(2·1.2²)) = 71 % of its mass there: "
                    "most candidates are off support before any critic chooses.", shown="first",
                    digits=".0%", certain=True)),
    Claim("landscape",
          "Raw bilinear, cosine, and hybrid select outside the support disk in this representative "
          "run; TD-Q selects inside.", "fig:landscape",
          representative_run),
    Claim("only-tdq",
          "Only TD-Q selects inside support with near-zero regret.", "tab:toy-support",
          Swept(Criterion(main("regret", TDQ), HERE, NEAR_ORACLE,
                          "Criterion: TD-Q's regret {condition}, {also}. {numbers}", shown="first",
                          part="TD-Q's regret", beside=(training_length,))
                & Criterion(main("off_support", TDQ).called("Off support"), HERE,
                            at_most(INSIDE), "{condition:%} of its picks off support",
                            shown="first", part="TD-Q's support", digits=".0%")
                & Criterion(main("regret", CONTRASTIVE).called("The others' regret"), HERE,
                            FAILS, "every other regret {condition}", part="{}'s regret"),
                CRITICS)),
    Claim("cosine-less-severe",
          "Cosine is less severe and more variable than raw.", "tab:toy-support",
          Swept(cosine_less_severe, RANKERS)),
    Claim("hybrid-as-often-as-raw",
          "Hybrid [selects off support] nearly as often as raw.", "tab:toy-support",
          Swept(Criterion(paired(main("off_support", ("hybrid",)), main("off_support", ("raw",)),
                                 "Less raw's rate"), HERE, short_by_at_most(0.2),
                          "{condition} raw's rate, the paper's own gap being 0.16", shown="first",
                          digits=".0%",
                          beside=(listed(main("off_support", ("hybrid", "raw")).called("Rates"),
                                         ".0%"), base_rate)), ("hybrid", "raw"))),
    Claim("mean-norms",
          "The mean norm of the pick is below R for TD-Q, above R for cosine and far above R for "
          "raw and hybrid.", "tab:toy-support",
          Swept(mean_norms, CRITICS)),
    Claim("readout-control",
          "Replacing the cosine readout with a TD-calibrated head on the same network restores "
          "near-oracle selection.", "tab:toy-within",
          Swept(readout_control, HEADS)),
    Claim("sum-readout",
          "The full sum Q_hybrid = q_td + α f_cos gives nearly identical "
          "results.", "tab:toy-within",
          Swept(sum_nearly_identical, HEADS)),
    Claim("score-rises",
          "The selected proxy score rises for every contrastive critic as K grows …", "fig:curse",
          Criterion(Numbers(smallest_rise), HERE, at_least(ZERO),
                    "Criterion: {condition} in every seed. This holds by arithmetic: the largest "
                    "of more scores is never smaller. The number is the smallest rise over one "
                    "doubling of K, {shown}'s, in its own score units.", certain=True)),
    Claim("value-falls",
          "… but the selected action's true value falls.", "fig:curse",
          Swept(Criterion(seed_curve("value", CONTRASTIVE, change), HERE, below(ZERO),
                          "Criterion: the value at the largest K less that of a random candidate "
                          "(K = 1) is {condition}. Change from K = 1: {spelled}. The number is "
                          "{shown}'s, the least clear.", digits="+.3f",
                          beside=(in_seeds(seed_curve("value", CONTRASTIVE, change), below(ZERO)),
                                  largest_k)), CONTRASTIVE)),
    Claim("tdq-near-oracle",
          "Only TD-Q remains near the oracle.", "fig:curse",
          Swept(Criterion(seed_curve("regret", TDQ, max, "TD-Q").called("Largest regret over K"),
                          HERE, NEAR_ORACLE,
                          "TD-Q's regret {condition} at every K (in the sweeps, at the largest)",
                          shown="first", beside=(training_length, largest_k))
                & Criterion(seed_curve("regret", CONTRASTIVE, last).called("At the largest K"),
                            HERE, FAILS, "every other critic's {condition} at the largest K"),
                CRITICS)),
    Claim("raw-norm-high",
          "Raw norms stay high as K increases …", "fig:toy-regret",
          Criterion(seed_curve("phi_norm", ("raw",), multiple), HERE, at_least(1 - MATERIAL),
                    "Criterion: the embedding norm of {shown}'s pick at the largest K relative to "
                    f"that of a random candidate is {{condition}}, within {MATERIAL:.0%}, and also "
                    "at least 1. The number is that ratio.", shown="first",
                    part=f"a norm within {MATERIAL:.0%} of a random candidate's",
                    beside=(in_seeds(seed_curve("phi_norm", ("raw",), multiple), at_least(1.0)),
                            norms_beside, largest_k))
          & Criterion(seed_curve("phi_norm", ("raw",), multiple).called(""), HERE, at_least(1.0),
                      "", shown="first", part="a norm not below a random candidate's")),
    Claim("other-norms-fall",
          "… while bounded and calibrated critic norms fall.", "fig:toy-regret",
          other_norms_fall),
    Claim("search-finds-more",
          "High-score false positives exist, and stronger search finds them more "
          "often.", "sec:toy-support",
          Swept(Criterion(seed_curve("off_support", CONTRASTIVE, change).called("Changes"), HERE,
                          above(ZERO),
                          "the off-support rate at the largest K less that of a random candidate "
                          "is {condition}",
                          beside=(listed(seed_curve("off_support", CONTRASTIVE, last)
                                         .called("At the largest K"), ".0%"), base_rate,
                                  largest_k)), CONTRASTIVE)),
)
# fmt: on
"""The main text's statements."""
