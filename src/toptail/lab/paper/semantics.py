"""Every statement the paper makes about what a score means, and who decides it."""

from __future__ import annotations

from toptail.lab.paper import semantics_oracle as oracle
from toptail.lab.paper import semantics_order as order
from toptail.lab.paper import semantics_retrieval as retrieval
from toptail.lab.paper import semantics_search as search
from toptail.lab.paper.ledger import Claim

SEMANTICS: tuple[Claim, ...] = (
    Claim(
        "weak-calibration",
        "Contrastive scores are weakly calibrated or inverted in the top score decile across four "
        "OGBench navigation tasks.",
        "abstract",
        order.weak_calibration,
    ),
    Claim(
        "training-not-reading",
        "A training/readout decomposition traces the lost ordering to the cosine training "
        "objective; raw-trained embeddings retain weak ordering after inference-time "
        "normalization.",
        "abstract",
        order.training_not_reading,
    ),
    Claim(
        "useful-rankers",
        "Contrastive critics remain useful compatibility rankers on navigation and manipulation "
        "tasks.",
        "abstract",
        retrieval.useful_rankers,
    ),
    Claim(
        "order-despite-compatibility",
        "Our experiments find weak or inverted value ordering despite strong compatibility across "
        "four OGBench navigation tasks …",
        "sec:intro",
        order.order_despite_compatibility,
    ),
    Claim(
        "manipulation-rankers",
        "… and strong retrieval on four manipulation tasks: raw and cosine remain near-perfect "
        "retrievers.",
        "sec:intro",
        retrieval.manipulation_rankers,
    ),
    Claim(
        "negative-medians",
        "The cosine and hybrid readouts select low-value OGBench actions with negative cosine "
        "values …",
        "cor:bounded",
        search.negative_medians,
    ),
    Claim(
        "no-saturation",
        "… and no selected score exceeds 0.9.",
        "cor:bounded",
        search.no_saturation,
    ),
    Claim(
        "tdq-gap",
        "The top-minus-bottom decile gap is strongly positive for TD-Q (0.18–0.35), …",
        "sec:calibration",
        order.tdq_gap,
    ),
    Claim(
        "raw-gap",
        "… weak and task-dependent for raw bilinear (−0.01–0.15), …",
        "sec:calibration",
        order.raw_gap,
    ),
    Claim(
        "bounded-gap",
        "… and near zero or negative for cosine and hybrid.",
        "sec:calibration",
        order.bounded_gap,
    ),
    Claim(
        "tdq-monotone", "TD-Q is monotone [over deciles].", "fig:calibration", order.tdq_monotone
    ),
    Claim(
        "flat-tail",
        "Cosine and hybrid are flat or inverted in the high-score tail.",
        "fig:calibration",
        order.flat_tail,
    ),
    Claim("gap-spread", "Per-seed std is ≤ 0.02.", "tab:calibration-summary", order.gap_spread),
    Claim(
        "tdq-order",
        "TD-Q produces strong progress ordering (τ = 0.49–0.79).",
        "tab:main",
        order.tdq_order,
    ),
    Claim(
        "raw-order",
        "Raw bilinear has only weak, task-dependent ordering: 0.22–0.27 on the three core tasks "
        "and a negative correlation on AntSoccer.",
        "tab:main",
        order.raw_order,
    ),
    Claim(
        "bounded-order",
        "Cosine and hybrid are near zero or negative.",
        "tab:main",
        order.bounded_order,
    ),
    Claim(
        "no-monotone-fix",
        "Monotone recalibration leaves the pick unchanged, so post-training transformations cannot "
        "repair the selection of cosine and hybrid.",
        "sec:calibration",
        order.no_monotone_fix,
    ),
    Claim(
        "rankers-auc",
        "Raw and cosine reach retrieval AUCs of 0.96–1.0, …",
        "sec:good-rankers",
        retrieval.rankers_auc,
    ),
    Claim(
        "hybrid-lower",
        "… while hybrid is lower and more variable at 0.86–0.99.",
        "sec:good-rankers",
        retrieval.hybrid_lower,
    ),
    Claim(
        "hard-strongest",
        "The contrastive readouts remain the strongest retrievers on every task with harder "
        "negatives.",
        "sec:good-rankers",
        retrieval.hard_strongest,
    ),
    Claim(
        "reverse-pattern",
        "TD-Q generally shows the reverse pattern: stronger ordering and less emphasis on "
        "retrieval. HumanoidMaze is the exception, where TD-Q also retrieves nearly perfectly.",
        "sec:good-rankers",
        retrieval.reverse_pattern,
    ),
    Claim(
        "profile-above",
        "Each contrastive score stays far above the random-goal baseline at every distance …",
        "fig:good-rankers",
        retrieval.profile_above,
    ),
    Claim(
        "profile-flat",
        "… but changes little as distance grows.",
        "fig:good-rankers",
        retrieval.profile_flat,
    ),
    Claim(
        "profile-decays",
        "TD-Q scores instead decay toward the baseline as the goal recedes.",
        "fig:good-rankers",
        retrieval.profile_decays,
    ),
    Claim(
        "tdq-weak-on-cube",
        "TD-Q is much weaker on Cube and Scene (AUC 0.53–0.56) …",
        "tab:retrieval",
        retrieval.tdq_weak_on_cube,
    ),
    Claim(
        "tdq-well-on-puzzle",
        "… but performs well on Puzzle (AUC 0.89).",
        "tab:retrieval",
        retrieval.tdq_well_on_puzzle,
    ),
    Claim(
        "hybrid-lowest-on-puzzle",
        "Hybrid has the lowest Puzzle AUC at 0.79.",
        "tab:retrieval",
        retrieval.hybrid_lowest_on_puzzle,
    ),
    Claim(
        "retrieval-spread",
        "Per-seed std is at most 0.06, except for AntSoccer TD-Q recall.",
        "tab:retrieval",
        retrieval.retrieval_spread,
    ),
    Claim(
        "raw-read-as-cosine",
        "Raw-trained embeddings retain weak value ordering under a cosine readout, with positive "
        "τ, …",
        "sec:readout",
        order.raw_read_as_cosine,
    ),
    Claim(
        "norm-alone",
        "… while the norm ‖φ‖ alone carries almost none of the signal.",
        "sec:readout",
        order.norm_alone,
    ),
    Claim(
        "cosine-training-loses",
        "Cosine-trained embeddings lose the ordering under both raw and normalized readouts.",
        "sec:readout",
        order.cosine_training_loses,
    ),
    Claim(
        "centering",
        "Per-query mean-centering lowers the pooled global τ to ≈ 0.01 for every critic.",
        "sec:closed-loop",
        search.centering,
    ),
    Claim(
        "tdq-approaches-oracle",
        "TD-Q's selected value approaches the pool oracle as K grows.",
        "fig:ogbench-curse",
        search.tdq_approaches_oracle,
    ),
    Claim(
        "tdq-regret",
        "TD-Q regret at K = 64 is at most 0.03 on the three core tasks and 0.06 on AntSoccer.",
        "tab:ogbench-curse",
        search.tdq_regret,
    ),
    Claim(
        "peaks-early",
        "Every contrastive critic peaks early and falls toward or below random.",
        "fig:ogbench-curse",
        search.peaks_early,
    ),
    Claim(
        "contrastive-regret",
        "Larger K worsens [contrastive] selection, producing regret of 0.18–0.26 at K = 64, …",
        "tab:ogbench-curse",
        search.contrastive_regret,
    ),
    Claim(
        "order-of-magnitude",
        "… an order of magnitude above TD-Q.",
        "tab:ogbench-curse",
        search.order_of_magnitude,
    ),
    Claim(
        "tdq-never-worsens",
        "TD-Q faces the same increase in search pressure, yet its performance does not worsen with "
        "K.",
        "sec:closed-loop",
        search.tdq_never_worsens,
    ),
    Claim(
        "off-support-rises",
        "The excess rate [of off-support picks] rises above zero with K for every contrastive "
        "critic.",
        "fig:ogbench-drift",
        search.off_support_rises,
    ),
    Claim(
        "tdq-on-support",
        "TD-Q remains at or below zero.",
        "fig:ogbench-drift",
        search.tdq_stays_on_support,
    ),
    Claim(
        "near-sweep-positive",
        "Every contrastive critic has a positive excess off-support rate throughout the sweep of "
        "n_near, …",
        "tab:robustness",
        search.near_sweep_positive,
    ),
    Claim(
        "near-sweep-decreases",
        "… although the rate decreases slightly as the neighborhood grows.",
        "tab:robustness",
        search.near_sweep_decreases,
    ),
    Claim(
        "near-sweep-tdq",
        "TD-Q shows no off-support preference on the maze or AntSoccer tasks. Its HumanoidMaze "
        "excess is small and positive.",
        "tab:robustness",
        search.near_sweep_tdq,
    ),
    Claim(
        "bucket-falls",
        "Regret falls for all critics [within quartiles of γ^d].",
        "tab:robustness",
        search.bucket_falls,
    ),
    Claim(
        "bucket-ratio",
        "Even so, contrastive critics have 1.5–2.5× as much regret as TD-Q.",
        "tab:robustness",
        search.bucket_ratio,
    ),
    Claim(
        "stitching-gap",
        "The correlation of γ^d and the DP value stays well below 1 on PointMaze and AntMaze; the "
        "values mostly agree on HumanoidMaze.",
        "tab:value-oracle",
        oracle.stitching_gap,
    ),
    Claim(
        "regret-doubles",
        "Normalized contrastive regret roughly doubles on both tasks.",
        "tab:value-oracle",
        oracle.regret_doubles,
    ),
    Claim(
        "humanoid-near-random",
        "On HumanoidMaze contrastive regret remains near random.",
        "app:value-oracle",
        oracle.near_random_on_humanoid,
    ),
    Claim(
        "curse-under-oracle",
        "The cross-query effect remains under the DP value: every seed shows much higher "
        "contrastive regret than TD-Q.",
        "app:value-oracle",
        oracle.curse_under_oracle,
    ),
    Claim(
        "not-the-proxy",
        "The comparability failure does not depend on the γ^d proxy.",
        "app:value-oracle",
        oracle.not_the_proxy,
    ),
    Claim(
        "diffusion-unchanged",
        "Contrastive best-of-K regret under diffusion samples closely matches the in-support "
        "result.",
        "tab:value-oracle-diffusion",
        oracle.diffusion_unchanged,
    ),
    Claim(
        "diffusion-spread",
        "[It is stable] across three independently trained diffusion policies, with cross-seed "
        "standard deviation at most 0.005.",
        "tab:value-oracle-diffusion",
        oracle.diffusion_spread,
    ),
    Claim(
        "diffusion-holds-out",
        "The behavior model's train/holdout gap is about zero.",
        "app:value-oracle",
        oracle.diffusion_holds_out,
    ),
    Claim(
        "tdq-consistent",
        "TD-Q has normalized [Bellman] error near 0.05.",
        "tab:bellman",
        order.tdq_consistent,
    ),
    Claim(
        "contrastive-error",
        "The contrastive scores are 4–8× larger.",
        "tab:bellman",
        order.contrastive_error,
    ),
    Claim("hybrid-between", "Hybrid lies between them.", "tab:bellman", order.hybrid_between),
    Claim(
        "consistent-without-offset",
        "TD-Q is nearly consistent, whereas the contrastive scores are not.",
        "tab:bellman",
        order.consistent_without_offset,
    ),
    Claim(
        "hard-order",
        "Even with these harder negatives, the critic ordering is unchanged on every task.",
        "app:retrieval",
        retrieval.hard_order,
    ),
    Claim(
        "manipulation-hard",
        "Contrastive readouts remain the strongest retrievers, with manipulation AUC at 0.94–1.0 "
        "[under hard negatives] …",
        "app:retrieval",
        retrieval.manipulation_hard,
    ),
    Claim(
        "hard-tdq-weakest",
        "… and TD-Q remains the weakest.",
        "app:retrieval",
        retrieval.hard_tdq_weakest,
    ),
    Claim(
        "same-trajectory",
        "With same-trajectory goals at different temporal distances, every critic performs at "
        "chance …",
        "app:retrieval",
        retrieval.same_trajectory,
    ),
    Claim(
        "temporal-precision",
        "… [this] measures temporal precision rather than compatibility and does not separate the "
        "critics.",
        "app:retrieval",
        retrieval.temporal_precision,
    ),
    Claim(
        "separate-order",
        "The separate two-head variant matches TD-Q's γ^d ordering on all three tasks, …",
        "tab:twohead",
        retrieval.separate_order,
    ),
    Claim(
        "separate-near-perfect",
        "… while its cosine head keeps retrieval AUC near 0.99.",
        "tab:twohead",
        retrieval.separate_near_perfect,
    ),
    Claim(
        "separate-retrieval",
        "A separate TD head restores value ordering without reducing the cosine retrieval score.",
        "app:twohead",
        retrieval.separate_retrieval,
    ),
    Claim(
        "joint-order",
        "The joint variant works on PointMaze and AntMaze, but its value ordering is weak on "
        "HumanoidMaze.",
        "tab:twohead",
        retrieval.joint_order,
    ),
)
"""In the order in which a reader of the paper meets them."""
