"""The controlled study: the paper's 2-D world, from data to tables.

`run_controlled` trains every critic on every seed, scores shared candidate pools, and stores all
that tables, figures and pages are made of. Nothing downstream needs a network. `StudyConfig` says
how the settings that the paper leaves open were fixed.

What a run leaves in its folder
-------------------------------
``config.json``, ``record.json``
    The configuration of the last call, and its command, versions, commit, machine and seconds.
``units/CRITIC-R0.40-seed42-HASH/``
    One trained critic: ``unit.json`` (what it is, its curves, its last training losses),
    ``params.safetensors``, and at the default setting ``scores.npz``: each readout on the pools,
    float32 [queries, candidates], and the norm-capped scores ``capped`` and ``capped_data``. HASH
    covers everything that decides the content: a unit that exists is never trained again.
``pools/R0.40.npz``
    What all critics of a radius are scored on: ``states`` and ``goals`` [m, 2], ``actions``
    [m, n, 2], and [m, n]: ``value`` (exact Q*), ``value_noisy`` (sigma = 0.05), ``support``.
``tables/NAME.json``
    ``{"label", "caption", "rows": task -> critic -> metric -> cell, "paper": the same nesting,
    "notes": [sentences]}``. A cell is ``{"mean", "std" (ddof 1), "seeds": {seed: value}}``; where
    an interval over queries exists also ``"low"`` and ``"high"`` (95 %, paired bootstrap over
    queries). Paper cells are ``{"mean"}`` or ``{"mean", "std"}``. Names and tasks:

    ``toy-support`` (label tab:toy-support)
        task ``controlled``; critics tdq, raw, cosine, hybrid; regret, off_support, mean_norm, and
        beside the paper's metrics: selected_score, value, oracle, random_value, retrieval_auc
        (held-out pairs), loss (last training loss). Below them the ideal critics q_star,
        q_behaviour and log_ratio, which nobody trained: their only "seed" is 0.
    ``toy-within`` (tab:toy-within)
        task ``controlled``; critics f_cos, q_td, q_hybrid; the same metrics.
    ``r-sweep`` (tab:r-sweep)
        tasks ``controlled@R=0.25``, ``controlled@R=0.40``, ``controlled@R=0.55``; as toy-support,
        over the first three seeds.
    ``support-decomposition``
        task ``controlled``, and ``controlled@loss=symmetric_info_nce`` where the loss was swept;
        critics raw, cosine, hybrid; metrics regret, off_support, regret_off and regret_on
        (contributions of picks off and on support, they add up to regret), mean_regret_off and
        mean_regret_on (mean regret of such picks), and for each counterfactual C in support_only,
        cosine_readout, norm_cap, norm_cap_data, norm_only: ``regret/C``, ``off_support/C``,
        ``same_pick/C`` (how often it picks as the deployed scalar does) and ``share/C`` =
        1 - regret/C over regret, whose cell also has ``pooled`` (ratio of the seed-mean regrets;
        ``low`` and ``high`` belong to it).
    ``search-error`` (search-error)
        task ``controlled``; the critics of the two tables above that have an ideal, and the ideals;
        target, estimation and extrapolation, which add up to total, the regret; estimation_last and
        extrapolation_first, the same terms taken the other way round; all again as ``pooled/...``.
    ``noise``
        task ``controlled@sigma=0.05``; critics oracle, tdq, raw, cosine, hybrid, and
        tdq_noisy_reward (TD-Q trained on the noisy reward); regret (exact value), regret_noisy
        (Rice mean), largest_shift (over queries), picks_changed (share of queries).
    ``sweep-steps``, ``sweep-temperature``, ``sweep-loss``, ``sweep-bias``, ``sweep-layer_norm``
        tasks ``controlled@steps=1000``, ``controlled@temperature=0.1``, ``...=learned``,
        ``controlled@loss=binary_nce``, ``controlled@aligned_share=0.5``,
        ``controlled@aligned_noise=0.25``, ``controlled@layer_norm=off,steps=3000``; regret,
        off_support, mean_norm, selected_score, value, retrieval_auc, loss. The two-head readouts
        appear as critics ``f_cos``, ``q_td``, ``q_hybrid``. ``"axis"`` names what was swept and
        ``"default"`` lists the tasks that are the default setting.
    ``choice``
        Only where the default setting was chosen anew: TD-Q by steps, cosine by temperature, and
        ``"chosen"``.
``curves.json``
    ``{"label": ["fig:curse", "fig:toy-regret"], "k", "oracle": [K], "random": number, "critics":
    critic -> metric -> {"mean": [K], "std": [K], "seeds": {seed: [K]}}, "phi_norm_in_support":
    critic -> {"mean", "p99"}}``; critics as in toy-support and toy-within; metrics selected_score,
    value, regret, off_support, mean_norm, phi_norm (TD-Q: length of its last hidden layer;
    two-head readouts: their shared phi).
``landscape.npz``
    The first seed and the first query, at the main radius: ``axis`` [101]; ``goal`` [2];
    ``radius`` [1]; ``seed`` [1]; ``candidates`` [n, 2]; ``candidate_value`` [n]; ``oracle_pick``
    [1]; ``value`` [101, 101]; and for each of tdq, raw, cosine, hybrid: ``score_CRITIC`` and
    ``gradient_CRITIC`` [101, 101] (``||grad_a f||``), ``candidate_score_CRITIC`` [n],
    ``pick_CRITIC`` [1]. Surfaces are indexed [y, x]. Held-out pairs: ``positive_CRITIC`` and
    ``negative_CRITIC`` [2000], scores with the pair's own goal and with a random one, and
    ``distance`` [2000] to the own goal.
``audit/`` and ``audit_pools.npz``
    `toptail audit` of the same pools: verdicts of every critic and two-head readout.
"""
