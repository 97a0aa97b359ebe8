"""What the zoo's scores are worth, and the answers by the rules of ``paper/docs/zoo.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

import toptail
from toptail.io.json_files import read_json
from toptail.lab.critics.registry import CRITICS
from toptail.pools.columns import group_seeds
from toptail.stats import best_of_k, bootstrap_sums, cluster_sums, percentile_interval
from toptail.stats.resample import bootstrap_p, holm
from toptail_paper.study.naming import IDEALS
from toptail_paper.study.replicates import read_replicates
from toptail_paper.zoo.scores import COLUMNS, SOURCES, replicates, table_name

TASK: Final = "pointmaze-medium-navigate-v0"
FORMAT: Final = "toptail-zoo-1"
RESAMPLES: Final = 10_000
RAW, TDQ, HEAD = "raw", "tdq", "value_head"
FROM_PHI, FROM_INPUTS = "fitted_phi", "fitted_inputs"
FITTED: Final = (FROM_PHI, FROM_INPUTS)
"""Networks that are fitted to TD-Q's values: see `toptail_paper.zoo.fitted`."""
IDEAL_ROWS: Final = ("log_ratio", "gamma_d", "q_behaviour")
"""Ideal critics, which nobody trained: see `toptail_paper.zoo.ideals`."""
NO_CRITICS: Final = (*FITTED, *IDEAL_ROWS)
"""Rows that explain others: no answer is given about them, and the leaderboard leaves them out."""
REGRET: Final = "nregret_64"
"""Normalized regret at K = 64 in the tables of the fixed-query study: 1 less the captured share."""

SIMULATOR: Final = "simulator"
"""Name of the check of all critics in the simulator, which has candidates of its own."""

NO_BETTER: Final = 0.05
"""A critic is no better than raw if it captures less than this much more."""
HALF, QUARTER = 0.5, 0.25
"""Share of the gap to TD-Q that a cure closes, and that its interval begins above."""
GOOD_OBJECTIVE: Final = 0.8
"""Captured share of a good objective."""
GOOD_RANKER: Final = 0.01
"""How far the AUC of a good ranker may lie below raw's."""

TITLES: Final = {
    "straight": "Straight line to the goal",
    "random": "Random score",
    "raw_all_mean": "Raw: mean of 6 networks",
    "raw_all_min": "Raw: minimum of 6 networks",
    "raw_all_lcb": "Raw: lower bound of 6 networks",
    "tdq_all_mean": "TD-Q: mean of 6 networks",
    "tdq_all_min": "TD-Q: minimum of 6 networks",
    "tdq_all_lcb": "TD-Q: lower bound of 6 networks",
    FROM_PHI: "TD-Q's values, fitted from raw's φ and ψ",
    FROM_INPUTS: "TD-Q's values, fitted from state, action and goal",
}
"""Names of rows that are no critic's own."""


class Shares(NamedTuple):
    """Captured shares, or gains, of some scorers with resamples that all of them share."""

    names: Sequence[str]
    point: NDArray[np.float64]
    """``[scorers]``: value of the top score less that of a random candidate; of captured shares,
    over the headroom."""
    draws: NDArray[np.float64]
    """``[resamples, scorers]``, over clusters."""
    queries: int = 0
    """How many queries there are."""

    def of(self, name: str) -> tuple[float, NDArray[np.float64]]:
        at = self.names.index(name)
        return float(self.point[at]), self.draws[:, at]


def captured_shares(path: Path) -> Shares:
    """The captured share of every scorer of a stored table, its seeds averaged."""
    return _of_picks(path, "headroom")


def gains(path: Path) -> Shares:
    """The value that every scorer's pick gains over a random candidate, its seeds averaged."""
    return _of_picks(path, "query")


def _of_picks(path: Path, over: Literal["headroom", "query"]) -> Shares:
    """What picks gain over a random candidate: as a share of the headroom, or for each query."""
    table = pq.read_table(path)
    count = int(table["query"].to_numpy()[-1]) + 1

    def dense(name: str) -> NDArray[np.float64]:
        found: NDArray[np.float64] = table[name].to_numpy().astype(np.float64)
        return found.reshape(count, -1)

    values = dense("value")
    size = values.shape[1]
    _, cluster = np.unique(dense("cluster")[:, 0], return_inverse=True)
    seeds = group_seeds(_scores(table.column_names))
    picked = {
        name: np.mean([best_of_k(dense(c), values, [size])[:, 0] for c in own.values()], axis=0)
        for name, own in seeds.items()
    }
    columns = [np.ones(count), values.mean(axis=1), values.max(axis=1), *picked.values()]
    sums = cluster_sums(np.stack(columns, axis=1), cluster)
    draws = bootstrap_sums(sums, np.random.default_rng(0), RESAMPLES)

    def measured(total: NDArray[np.float64]) -> NDArray[np.float64]:
        low, best = total[..., 1:2], total[..., 2:3]
        found: NDArray[np.float64] = total[..., 3:] - low
        return found / (best - low if over == "headroom" else total[..., :1])

    return Shares(list(picked), measured(sums.sum(axis=0)), measured(draws), count)


def _scores(columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name not in (*COLUMNS, *replicates(columns))]


def _audit(path: Path) -> toptail.AuditResult:
    return toptail.audit(
        path,
        scores=_scores(pq.read_schema(path).names),
        values="value",
        query="query",
        cluster="cluster",
        group="group",
    )


def interval(draws: NDArray[np.float64]) -> tuple[float, float]:
    """The 95 % interval of resamples."""
    low, high = percentile_interval(draws)
    return float(low), float(high)


def cell(point: float, draws: NDArray[np.float64]) -> dict[str, float]:
    """A number with its 95 % interval."""
    low, high = interval(draws)
    return {"mean": point, "low": low, "high": high}


def summary(results: Path, task: str = TASK) -> dict[str, Any]:
    """Every row of the zoo on a task, with the answers that were asked for before.

    ``results`` has the tables of `toptail_paper.zoo.scores`, ``checks.json`` and ``runs.json``.
    """
    tables = {source: results / table_name(task, source) for source in SOURCES}
    shares = {source: captured_shares(path) for source, path in tables.items()}
    audits = {source: _audit(path) for source, path in tables.items()}
    checks, runs = read_json(results / "checks.json"), read_json(results / "runs.json")
    names = shares[SOURCES[0]].names
    columns = group_seeds(_scores(pq.read_schema(tables[SOURCES[0]]).names))
    seeds = {name: len(own) for name, own in columns.items()}
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        captured = {}
        for source in SOURCES:
            point, draws = shares[source].of(name)
            status = audits[source].verdicts[name].status
            tau = audits[source].to_dict()["scorers"][name]["tau_b"]["mean"]
            captured[source] = {**cell(point, draws), "status": status, "tau_b": tau}
        rows[name] = {
            "title": title(name),
            "trained_by": trained_by(name),
            "seeds": seeds[name],
            "captured": captured,
            "ascent": checks.get(name, {}).get("ascent"),
            "followed": checks.get(name, {}).get("followed", {}),
            "auc": _of_runs(runs, f"{task}/{name}/", lambda run: run["last_metrics"]["auc"]),
            "train_seconds": _of_runs(runs, f"{task}/{name}/", lambda run: run["seconds"]),
        }
    in_simulator = results / table_name(task, SIMULATOR)
    found = simulated(in_simulator) if in_simulator.is_file() else {}
    asked = {name: row for name, row in rows.items() if name not in NO_CRITICS}
    for name, answer in answers(asked, shares).items():
        rows[name] |= answer
    if task != TASK:
        not_by_its_own_kind(rows, found)
    return {
        "format": FORMAT,
        "task": task,
        "judge": "exact" if task == TASK else "reference",
        "queries": shares[SOURCES[0]].queries,
        "k": 64,
        "commit": checks["commit"],
        "critics": dict(
            sorted(rows.items(), key=lambda row: -row[1]["captured"]["nearest"]["mean"])
        ),
        "cure": cure(rows, shares) if HEAD in rows else None,
        **({"split": split(shares)} if IDEAL_ROWS[0] in rows else {}),
        **({"simulator": found, "one_rollout": one_rollout(in_simulator)} if found else {}),
    }


def split(shares: Mapping[str, Shares]) -> dict[str, Any]:
    """What each critic with a known ideal does not capture, of which its objective costs a part.

    ``objective`` is what the ideal does not capture, ``rest`` what the critic captures less than
    its ideal: errors of estimation, and of extrapolation where there is no data.
    """
    found: dict[str, Any] = {}
    for name in shares[SOURCES[0]].names:
        critic = CRITICS.get(name)
        if critic is None or critic.ideal is None:
            continue
        own: dict[str, Any] = {"ideal": critic.ideal}
        for source, of_source in shares.items():
            point, draws = of_source.of(name)
            # Q* is the value by which all are judged, so that it captures everything.
            best, at_best = 1.0, np.ones_like(draws)
            if critic.ideal in of_source.names:
                best, at_best = of_source.of(critic.ideal)
            objective, rest = cell(1 - best, 1 - at_best), cell(best - point, at_best - draws)
            own[source] = {"objective": objective, "rest": rest}
        found[name] = own
    return found


def not_by_its_own_kind(rows: Mapping[str, dict[str, Any]], simulator: Mapping[str, Any]) -> None:
    """Undecide what a reference ensemble of TD-Qs alone calls better of Bellman-trained critics.

    They are better where their picks gain more than raw's in the simulator, too.
    """
    for name, row in rows.items():
        more = simulator.get(name, {}).get("more_than_raw", {"low": -np.inf})
        if row["trained_by"] == "bellman" and row.get("than_raw") == "better" and more["low"] <= 0:
            row["than_raw"] = "not decided"


def title(name: str) -> str:
    critic, _, readout = name.partition(".")
    if name in TITLES or name in IDEALS:
        return TITLES.get(name) or IDEALS[name]
    kinds = {"min": "minimum of 2 networks", "lcb": "lower bound of 2 networks"}
    own = CRITICS[critic].title
    return f"{own}: {kinds[readout.rpartition('_')[2]]}" if readout else own


def trained_by(name: str) -> str | None:
    """The objective of a row; None where nothing is trained."""
    critic = name.partition(".")[0].partition("_all")[0]
    return CRITICS[critic].trained_by if critic in CRITICS else None


def _of_runs(runs: Mapping[str, Any], home: str, read: Any) -> float | None:
    """The mean over a critic's runs; of runs that were trained twice, the later one."""
    own = [run for key, run in runs.items() if key.startswith(home)]
    later = [run for key, run in runs.items() if key.startswith(home) and "(" in key]
    found = [read(run) for run in later or own]
    return float(np.mean(found)) if found else None


def simulated(path: Path) -> dict[str, Any]:
    """Gains of the picks in the simulator, by scorer, alone and less raw's, paired by query."""
    found = gains(path)
    _, raw = found.of(RAW)
    return {
        name: {
            "gain": cell(point, draws),
            "more_than_raw": cell(point - found.of(RAW)[0], draws - raw),
        }
        for name in found.names
        for point, draws in [found.of(name)]
    }


def one_rollout(path: Path) -> dict[str, float]:
    """What the best candidate of one repetition gains in the other: more can be had than that."""
    table = pq.read_table(path)
    count = int(table["query"].to_numpy()[-1]) + 1
    first, second = (
        table[name].to_numpy().reshape(count, -1) for name in replicates(table.column_names)
    )
    at = np.arange(count)
    gain = [
        judged[at, picked.argmax(axis=1)] - judged.mean(axis=1)
        for picked, judged in ((first, second), (second, first))
    ]
    _, cluster = np.unique(
        table["cluster"].to_numpy().reshape(count, -1)[:, 0], return_inverse=True
    )
    sums = cluster_sums(np.stack([np.ones(count), np.mean(gain, axis=0)], axis=1), cluster)
    draws = bootstrap_sums(sums, np.random.default_rng(0), RESAMPLES)
    return cell(float(np.mean(gain)), draws[:, 1] / draws[:, 0])


def answers(
    rows: Mapping[str, Mapping[str, Any]], shares: Mapping[str, Shares]
) -> dict[str, dict[str, Any]]:
    """Safe, better than raw, good ranker and good objective, of each row."""
    others = [name for name in rows if name != RAW]
    differences = {
        source: {name: own.of(name)[1] - own.of(RAW)[1] for name in others}
        for source, own in shares.items()
    }
    adjusted = {
        source: dict(
            zip(others, holm([bootstrap_p(own[name][:, None])[0] for name in others]), strict=True)
        )
        for source, own in differences.items()
    }
    found: dict[str, dict[str, Any]] = {}
    for name, row in rows.items():
        captured = row["captured"].values()
        safe = all(x["status"] == "safe" for x in captured) and row["ascent"] != "unsafe"
        good = safe and all(x["mean"] >= GOOD_OBJECTIVE for x in captured)
        ranks = row["auc"] is not None and row["auc"] >= rows[RAW]["auc"] - GOOD_RANKER
        found[name] = {"safe": safe, "good_objective": good, "good_ranker": ranks}
        if name == RAW:
            continue
        ends = {source: interval(own[name]) for source, own in differences.items()}
        better = all(low > 0 and adjusted[source][name] < 0.05 for source, (low, _) in ends.items())
        no_better = all(high < NO_BETTER for _, high in ends.values())
        answer = "better" if better else "no better" if no_better else "not decided"
        more = {
            source: {"mean": shares[source].of(name)[0] - shares[source].of(RAW)[0]}
            | dict(zip(("low", "high"), ends[source], strict=True))
            for source in shares
        }
        found[name] |= {"than_raw": answer, "more_than_raw": more}
    return found


def cure(rows: Mapping[str, Mapping[str, Any]], shares: Mapping[str, Shares]) -> dict[str, Any]:
    """The share of the gap between raw and TD-Q that the value head closes, and the answer.

    Where TD-Q is not better than raw, there is no gap.
    """
    found: dict[str, Any] = {}
    for source, own in shares.items():
        (before, d0), (after, d1), (value, d2) = (own.of(name) for name in (RAW, HEAD, TDQ))
        low, high = interval((d1 - d0) / (d2 - d0))
        closed = (after - before) / (value - before)
        found[source] = {"closed": closed, "low": low, "high": high}
    if any(interval(own.of(TDQ)[1] - own.of(RAW)[1])[0] <= 0 for own in shares.values()):
        return found | {"answer": "no gap"}
    better = rows[HEAD]["than_raw"] == "better"
    safe = rows[HEAD]["safe"] or rows[RAW]["safe"]
    return found | {"answer": cure_answer(list(found.values()), better=better, safe=safe)}


def cure_answer(closed: Sequence[Mapping[str, float]], *, better: bool, safe: bool) -> str:
    """The declared answer, of the closed shares by kind of candidates.

    ``better`` says whether the head is better than the critic that it reads, ``safe`` whether it is
    safe to maximize, or that critic was safe already.
    """
    if all(x["high"] < QUARTER for x in closed):
        return "not cured"
    if not better:
        return "not decided"
    enough = all(x["closed"] >= HALF and x["low"] > QUARTER for x in closed)
    return "cured" if enough and safe else "partly cured"


def studied_cure(home: Path, task: str) -> dict[str, Any]:
    """The cure by the reference ensemble and the candidates of the fixed-query study in ``home``.

    The answer is that of the declared rule, put to these candidates alone: the head is better than
    the critic that it reads if both the reference and simulator rollouts say so.
    """
    rows = read_json(home / "tables" / "fixed-query.json")["rows"][task]
    stored = read_replicates(home)[task]
    draws = {name: stored[f"fixed-query/{name}/{REGRET}"] for name in (RAW, HEAD, TDQ)}
    mean = {name: rows[name][REGRET]["mean"] for name in draws}
    low, high = interval((draws[RAW] - draws[HEAD]) / (draws[RAW] - draws[TDQ]))
    closed = (mean[RAW] - mean[HEAD]) / (mean[RAW] - mean[TDQ])
    gain = {name: stored[f"fixed-query/{name}/rollout_delta"] for name in (RAW, HEAD)}
    more = (draws[RAW] - draws[HEAD], gain[HEAD] - gain[RAW])
    better = all(interval(difference)[0] > 0 for difference in more)
    safe = any(verdict_of(home, name) == "safe" for name in (RAW, HEAD))
    own = {"closed": closed, "low": low, "high": high}
    return own | {"answer": cure_answer([own], better=better, safe=safe)}


def verdict_of(home: Path, name: str) -> str:
    """The verdict of the fixed-query study's audit by the reference ensemble."""
    found: str = read_json(home / "audit" / "audit.json")["scorers"][name]["verdict"]["status"]
    return found
