"""Every statement the paper makes about the controlled study, and who decides it."""

from __future__ import annotations

from toptail.lab.paper import controlled_curves as curves
from toptail.lab.paper import controlled_robustness as robustness
from toptail.lab.paper import controlled_selection as selection
from toptail.lab.paper.ledger import Claim

CONTROLLED: tuple[Claim, ...] = (
    Claim(
        "norm-drift",
        "A controlled support decomposition attributes most raw bilinear regret to norm drift.",
        "abstract",
        selection.norm_drift,
    ),
    Claim(
        "bounded-off-support",
        "Cosine and hybrid critics nevertheless select off-support actions from most pools …",
        "abstract",
        selection.off_support_from_most_pools,
    ),
    Claim(
        "bounded-comparable-regret",
        "… and incur comparable regret.",
        "abstract",
        selection.comparable_regret,
    ),
    Claim(
        "selection-costs",
        "[There are] single-step selection costs on … the exact-Q* toy.",
        "abstract",
        selection.selection_costs,
    ),
    Claim("below-cap", "Our failures occur below the cap.", "sec:intro", selection.below_cap),
    Claim(
        "mixed-pools",
        "Clipped Gaussian candidate pools contain actions from both inside and outside the disk.",
        "sec:toy-support",
        curves.mixed_pools,
    ),
    Claim(
        "landscape",
        "Raw bilinear, cosine, and hybrid select outside the support disk in this representative "
        "run; TD-Q selects inside.",
        "fig:landscape",
        curves.representative_run,
    ),
    Claim(
        "only-tdq",
        "Only TD-Q selects inside support with near-zero regret.",
        "tab:toy-support",
        selection.only_tdq,
    ),
    Claim(
        "cosine-less-severe",
        "Cosine is less severe and more variable than raw.",
        "tab:toy-support",
        selection.cosine_less_severe,
    ),
    Claim(
        "hybrid-as-often-as-raw",
        "Hybrid [selects off support] nearly as often as raw.",
        "tab:toy-support",
        selection.hybrid_nearly_as_often,
    ),
    Claim(
        "mean-norms",
        "The mean norm of the pick is below R for TD-Q, above R for cosine and far above R for raw "
        "and hybrid.",
        "tab:toy-support",
        selection.mean_norms,
    ),
    Claim(
        "readout-control",
        "Replacing the cosine readout with a TD-calibrated head on the same network restores "
        "near-oracle selection.",
        "tab:toy-within",
        selection.readout_control,
    ),
    Claim(
        "sum-readout",
        "The full sum Q_hybrid = q_td + α f_cos gives nearly identical results.",
        "tab:toy-within",
        selection.sum_nearly_identical,
    ),
    Claim(
        "score-rises",
        "The selected proxy score rises for every contrastive critic as K grows …",
        "fig:curse",
        curves.score_rises,
    ),
    Claim(
        "value-falls",
        "… but the selected action's true value falls.",
        "fig:curse",
        curves.value_falls,
    ),
    Claim(
        "tdq-near-oracle",
        "Only TD-Q remains near the oracle.",
        "fig:curse",
        curves.tdq_near_oracle,
    ),
    Claim(
        "raw-norm-high",
        "Raw norms stay high as K increases …",
        "fig:toy-regret",
        curves.raw_norm_stays_high,
    ),
    Claim(
        "other-norms-fall",
        "… while bounded and calibrated critic norms fall.",
        "fig:toy-regret",
        curves.other_norms_fall,
    ),
    Claim(
        "search-finds-more",
        "High-score false positives exist, and stronger search finds them more often.",
        "sec:toy-support",
        curves.search_finds_them,
    ),
    Claim(
        "radius-order",
        "The critic ordering is preserved at every radius.",
        "tab:r-sweep",
        robustness.radius_order,
    ),
    Claim(
        "radius-80",
        "Every contrastive critic selects off-support actions on at least 80 % of queries.",
        "app:r-sweep",
        robustness.radius_at_least_80,
    ),
    Claim(
        "radius-far-more",
        "[Every contrastive critic] has far more regret than TD-Q, which remains within the "
        "support and has near-zero regret.",
        "app:r-sweep",
        robustness.radius_far_more,
    ),
    Claim(
        "radius-reproduces",
        "The R = 0.40 results reproduce the main table.",
        "app:r-sweep",
        robustness.radius_reproduces,
    ),
    Claim(
        "noise-selections",
        "Under isotropic Gaussian noise selected actions, off-support rates, and all best-of-K "
        "curves remain identical.",
        "sec:running-env",
        robustness.noise_selection,
    ),
    Claim(
        "noise-shift",
        "Regret magnitudes shift by at most 0.063 at σ = 0.05.",
        "sec:running-env",
        robustness.noise_shift,
    ),
    Claim(
        "nonidentifiability",
        "The contrastive objective imposes no constraint outside the support of its triples.",
        "sec:why-fail",
        curves.theory("off-support nonidentifiability"),
    ),
    Claim(
        "finite-inflation",
        "For any finite margin M there is a bilinear critic with bounded embeddings, equal on the "
        "support, that scores at least M on a separated region.",
        "thm:finite-inflation",
        curves.theory("finite off-support inflation"),
    ),
    Claim(
        "good-ranker",
        "Pr(pick in B) = 1 − (1 − p)^K → 1, and the expected regret reaches q_good − q_bad.",
        "prop:good-ranker-bad-obj",
        curves.theory("good ranker, bad objective"),
    ),
    Claim(
        "bounded-corollary",
        "A bounded score offers no protection once low-value actions reach the top of its range.",
        "cor:bounded",
        curves.theory("boundedness is not calibration"),
    ),
    Claim(
        "two-epsilon",
        "If the score is within ε of the value over the searched candidates, regret is at most 2ε.",
        "rem:sufficient",
        curves.theory("two-epsilon bound"),
    ),
    Claim(
        "positives-unordered",
        "A binary future-positive target requires no ordering between two positive goals.",
        "rem:positive-ordering",
        curves.theory("compatibility is not graded value"),
    ),
)
"""In the order in which a reader of the paper meets them, the theory last."""
