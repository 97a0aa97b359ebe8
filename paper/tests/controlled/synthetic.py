"""A controlled study that never ran: hand-made results in which every claim holds.

`results` builds the stored tables and curves from a few numbers, `write_folder` the run folder
that a real study would leave.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from toptail.audit.run import pools_content
from toptail.audit.settings import Settings
from toptail.io.arrays import write_arrays
from toptail.io.json_files import write_json
from toptail.judging.values import judged_pools
from toptail.pools import ScoredPools
from toptail_paper.controlled.theory.battery import check_theory
from toptail_paper.controlled.theory.support import BadRegion, StateActions, region_outside_disk

SEEDS = ("42", "43", "44")
K = (1, 2, 4, 8, 16)
JITTER = (-0.01, 0.0, 0.01)
MAIN = ("tdq", "raw", "cosine", "hybrid")
WITHIN = ("f_cos", "q_td", "q_hybrid")
NUMBERS = {  # regret, share off support, mean norm, and the paper's regret
    "tdq": (0.05, 0.01, 0.19, 0.078),
    "raw": (0.98, 0.95, 1.02, 0.978),
    "cosine": (0.64, 0.85, 0.69, 0.644),
    "hybrid": (0.86, 0.90, 0.89, 0.856),
    "f_cos": (0.9, 0.8, 0.9, 0.9),
    "q_td": (0.06, 0.0, 0.17, 0.068),
    "q_hybrid": (0.06, 0.0, 0.17, 0.070),
}
REGRET, OFF, NORM, PAPER = ({c: x[i] for c, x in NUMBERS.items()} for i in range(4))


def cell(mean: float, spread: float = 1.0, **more: Any) -> dict[str, Any]:
    """A table cell whose seeds lie around the mean."""
    seeds = {seed: mean + spread * j for seed, j in zip(SEEDS, JITTER, strict=True)}
    std = float(np.std(list(seeds.values()), ddof=1))
    return {"mean": mean, "std": std, "seeds": seeds, **more}


def row(critic: str) -> dict[str, Any]:
    """One critic's row of a selection table."""
    # Cosine differs most between seeds, as in the paper, and clearly more than raw.
    return {
        "regret": cell(REGRET[critic], {"cosine": 2.0, "raw": 0.2}.get(critic, 1.0)),
        "off_support": cell(OFF[critic], 0.0),
        "mean_norm": cell(NORM[critic]),
        "selected_score": cell(0.5),
        "value": cell(-0.04 - REGRET[critic]),
        "retrieval_auc": cell(0.9),
    }


def setting(auc: float) -> dict[str, Any]:
    """What one setting of a sweep trained; no two settings have the same numbers."""
    return {c: row(c) | {"retrieval_auc": cell(auc)} for c in (*MAIN[1:], *WITHIN)}


def table(label: str, rows: dict[str, Any], paper: Any = None, **more: Any) -> Any:
    about = {"label": label, "caption": f"Made up: {label}", "notes": ["Made up."]}
    return about | {"rows": rows, "paper": paper or {}} | more


def of(critics: tuple[str, ...], *tasks: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows of these critics in every task, and what the paper reports of them."""
    return (
        {task: {c: row(c) for c in critics} for task in tasks},
        {task: reported(critics) for task in tasks},
    )


def reported(critics: tuple[str, ...]) -> dict[str, Any]:
    return {
        c: {"regret": {"mean": PAPER[c], "std": 0.05}, "off_support": {"mean": OFF[c]}}
        for c in critics
    }


def share(pooled: float) -> dict[str, Any]:
    return cell(pooled, pooled=pooled, low=pooled - 0.05, high=pooled + 0.05)


def decomposition() -> dict[str, Any]:
    shares = {"support_only": 0.9, "cosine_readout": 0.7, "norm_cap": 0.8}
    shares |= {"norm_cap_data": 0.6, "norm_only": 0.1}
    return {
        critic: {
            "regret": cell(REGRET[critic]),
            "off_support": cell(OFF[critic], 0.0),
            "regret_off": cell(REGRET[critic] * 0.95),
            "regret_on": cell(REGRET[critic] * 0.05),
            **{f"share/{name}": share(value) for name, value in shares.items()},
        }
        for critic in ("raw", "cosine", "hybrid")
    }


def noise() -> dict[str, Any]:
    return {
        critic: {
            "regret": cell(REGRET.get(critic, 0.0)),
            "regret_noisy": cell(REGRET.get(critic, 0.0) - 0.02),
            "largest_shift": cell(0.05, 0.0),
            "picks_changed": cell(0.0, 0.0),
        }
        for critic in ("oracle", *MAIN)
    }


def curves() -> dict[str, Any]:
    """Curves from a random candidate (value −0.6, 70 % off support) to the main table's pick."""
    t = np.linspace(0.0, 1.0, len(K))
    oracle = -0.6 + 0.56 * t
    critics = {}
    for critic in (*MAIN, *WITHIN):
        end = -0.04 - REGRET[critic]
        metrics = {
            "value": -0.6 + (end + 0.6) * t,
            "regret": REGRET[critic] * t,
            "off_support": 0.7 + (OFF[critic] - 0.7) * t,
            "selected_score": -0.5 + t,
            "mean_norm": 0.6 + (NORM[critic] - 0.6) * t,
            "phi_norm": 5.0 * (1 + (0.3 if critic == "raw" else -0.2) * t),
        }
        critics[critic] = {
            name: {
                "seeds": {s: (v * (1 + j)).tolist() for s, j in zip(SEEDS, JITTER, strict=True)},
                "mean": v.tolist(),
            }
            for name, v in metrics.items()
        }
    return {
        "k": list(K),
        "oracle": oracle.tolist(),
        "random": -0.6,
        "critics": critics,
        "phi_norm_in_support": {c: {"mean": 4.0, "p99": 5.0} for c in critics},
    }


def theory() -> dict[str, Any]:
    """The real checks, on a small bilinear critic."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(4, 5)), rng.normal(size=(2, 5))
    angle = rng.uniform(0, 2 * np.pi, 64)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    support = StateActions(rng.uniform(-2, 2, (64, 2)), 0.3 * circle)
    bad = StateActions(np.zeros((64, 2)), 0.8 * circle)
    region: BadRegion = region_outside_disk(0.4, 0.1)
    checks = check_theory(
        lambda s, a: np.concatenate([s, a], axis=-1) @ left,
        lambda g: g @ right,
        region,
        support,
        rng.uniform(-2, 2, (64, 2)),
        bad,
        rng.uniform(-1, 0, (20, 256)),
        rng,
    )
    return {"critic": "raw", "seed": 42, "gap": 0.1, "checks": [c.as_json() for c in checks]}


def results() -> dict[str, Any]:
    """All stored results by name; a claim is decided from these and nothing else."""
    radii = ("0.25", "0.40", "0.55")
    temperatures, steps = {"0.1": 0.9, "1": 0.8, "learned": 0.7}, {1000: 0.6, 30000: 0.95}
    return {
        "toy-support": table("tab:toy-support", *of(MAIN, "controlled")),
        "toy-within": table("tab:toy-within", *of(WITHIN, "controlled")),
        "r-sweep": table("tab:r-sweep", *of(MAIN, *(f"controlled@R={r}" for r in radii))),
        "support-decomposition": table("", {"controlled": decomposition()}),
        "noise": table("noise", {"controlled@sigma=0.05": noise()}),
        "sweep-temperature": table(
            "",
            {f"controlled@temperature={t}": setting(auc) for t, auc in temperatures.items()},
            default=["controlled@temperature=0.1"],
        ),
        "sweep-steps": table(
            "", {f"controlled@steps={n}": setting(auc) for n, auc in steps.items()}, default=[]
        ),
        "curves": curves(),
        "theory": theory(),
        "landscape": {"radius": 0.4, "pick_norm": {c: NORM[c] for c in MAIN}},
    }


CONFIG: dict[str, Any] = {
    "world": {"radius": 0.4, "aligned_share": 0.5, "aligned_noise": 0.25, "proposal_scale": 1.2},
    "critics": {"hidden": [64, 64], "embed_dim": 16, "ensemble": 2, "layer_norm": True,
                "alpha": 1.0, "contrast": "binary_nce", "temperature": 0.1,
                "learn_temperature": False},
    "seeds": [42, 43, 44, 45, 46], "pool": 256, "steps": 3000, "batch_size": 256,
    "learning_rate": 1e-3, "data_size": 50_000, "queries": 500, "resamples": 100,
}  # fmt: skip
RECORD: dict[str, Any] = {
    "command": "toptail <made up>", "config_hash": "0", "state": "finished", "seconds": 12.3,
    "units": {"trained": 3, "reused": 4}, "versions": {"toptail": "0.1.0"}, "commit": None,
}  # fmt: skip


def landscape() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    axis = np.linspace(-1, 1, 21)
    x, y = np.meshgrid(axis, axis)
    candidates = rng.normal(0, 0.48, (64, 2)).clip(-1, 1)
    value = -np.linalg.norm(candidates - [0.1, 0.1], axis=-1)
    arrays: dict[str, Any] = {
        "axis": axis,
        "goal": np.array([0.1, 0.1]),
        "radius": np.array([0.4]),
        "seed": np.array([42]),
        "candidates": candidates,
        "candidate_value": value,
        "oracle_pick": np.array([value.argmax()]),
        "distance": rng.uniform(0, 4, 50),
    }
    for critic in MAIN:
        good = critic == "tdq"
        score = value if good else candidates[:, 0]
        arrays |= {
            f"score_{critic}": -np.hypot(x - 0.1, y - 0.1) if good else x,
            f"gradient_{critic}": np.hypot(x, y),
            f"candidate_score_{critic}": score,
            f"pick_{critic}": np.array([score.argmax()]),
            f"positive_{critic}": rng.normal(1, 1, 50),
            f"negative_{critic}": rng.normal(0, 1, 50),
        }
    return arrays


def write_folder(path: Path, *, everything: bool = True) -> Path:
    """A run folder; without `everything` only its configuration and the main table."""
    write_json(path / "config.json", {"study": "controlled", "hash": "0", "config": CONFIG})
    content = results()
    for name in content if everything else ["toy-support"]:
        if name in ("curves", "theory"):
            write_json(path / f"{name}.json", content[name])
        elif name != "landscape":
            write_json(path / "tables" / f"{name}.json", content[name])
    if everything:
        write_json(path / "record.json", RECORD)
        write_arrays(path / "landscape.npz", landscape())
        write_json(path / "audit" / "audit.json", _audit())
    return path


def _audit() -> Any:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(60, 16))
    scores = {
        f"{name}@{seed}": sign * values + 0.1 * rng.normal(size=values.shape)
        for seed in (42, 43)
        for name, sign in (("tdq", 1.0), ("raw", -1.0))
    }
    pools = judged_pools(ScoredPools.from_arrays(scores, values))
    return pools_content(pools, Settings(resamples=200))
