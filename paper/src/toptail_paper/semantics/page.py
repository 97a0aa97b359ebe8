"""The words of the semantics study's page, from its tables, curves and record alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from toptail.lab.judges.point import EXACT
from toptail.report.text import join, number, plural
from toptail_paper.semantics.results import SemanticsResults
from toptail_paper.semantics.specs import setting_name
from toptail_paper.study.compare import DIFFERS, where_compared
from toptail_paper.study.naming import drawn, in_order, is_control, scorer_name
from toptail_paper.study.page import Texts, recorded
from toptail_paper.study.point_judges import EUCLIDEAN
from toptail_paper.study.results import StudyResults, scale_rows

_LEAD: Final = (
    "Critics are asked about recorded triples: a state, the action taken there, and a "
    "state d steps later on the same trajectory as the goal. A score that means progress "
    "follows γ^d, the discounted way still to go; a score that means compatibility only "
    "tells goals of this trajectory from others. Search maximizes the score, so it is "
    "safe only as far as the top of the score means progress."
)

_READING: Final = (
    "Cells are mean ± standard deviation over training seeds. Below them: the 95 % interval of "
    "that mean, whole trajectories resampled with the trained critics held fixed⟦, and the "
    f"paper's number. {DIFFERS}⟧.",
    "γ^d is the return-to-go of the recorded path: a value on navigation data, a lower bound "
    "where shorter ways exist, and nothing on play data, where only retrieval is measured. TD-Q "
    "is trained towards such a value: its agreement with γ^d is a check of the method, not a "
    "discovery.",
    "Retrieval and ordering are different questions: a score can tell every true goal from a "
    "random one and still not know which of two true goals is nearer. Pooled best-of-K compares "
    "scores of different (s, g); it says nothing about choosing among actions at one (s, g).",
)

BY_HEART: Final = 0.05
"""Share of cases by which the order must be worse on seen trajectories, with certainty."""

TrainedAt = Mapping[str, Mapping[str, Sequence[float | str]]]
"""Task -> scorer -> the temperatures of its seeds, each once; numbers or `LEARNED`."""


def texts(study: SemanticsResults) -> Texts:
    return Texts(
        title="Score semantics",
        brand="score semantics",
        heading="What does a learned score mean?",
        lead=_LEAD,
        summary=summary(study),
        method=_method(study),
        reading=[where_compared(line, compared=study.has_paper) for line in _READING],
    )


def summary(study: SemanticsResults) -> list[str]:
    lines = []
    regret = "Normalized regret of"
    for table, metric, words in (
        ("main", "tau", "Kendall τ between score and γ^d"),
        ("retrieval", "auc", "Retrieval AUC"),
        ("ogbench-curse", "normalized", f"{regret} the best of K pooled triples by score"),
        ("value-oracle", f"nregret_{EXACT}", f"{regret} the same picks by the exact value"),
        (
            "value-oracle",
            f"nregret_{EUCLIDEAN}",
            f"{regret} the same picks by the Euclidean length of the shortest way",
        ),
    ):
        rows = {
            task: {
                s: cells
                for s, cells in scorers.items()
                if metric in cells and s not in _goal_free(study, table, task)
            }
            for task, scorers in study.rows(table).items()
        }
        rows = {task: scorers for task, scorers in rows.items() if scorers}
        parts = [
            f"{scorer_name(s)} {spread}"
            for s in drawn(s for task in rows.values() for s in task)
            if (spread := _range(rows, s, metric))
        ]
        if parts:
            lines.append(f"{words} on {join(rows)}: {'; '.join(parts)}.")
    return lines + memory_lines(study.tables.get("seen", {})) + temperature_lines(study)


def _goal_free(study: SemanticsResults, table: str, task: str) -> Sequence[str]:
    """Scorers that a table says nothing about: the goal does not matter to them."""
    free: Sequence[str] = study.tables[table].get("goal_free", {}).get(task, ())
    return free


def _range(rows: Mapping[str, Any], scorer: str, metric: str) -> str:
    """A scorer's mean on the one task, or the smallest and largest over tasks, and which if few."""
    means = {name: task.get(scorer, {}).get(metric, {}).get("mean") for name, task in rows.items()}
    known = {name: mean for name, mean in means.items() if mean is not None}
    if not known:
        return ""
    ends = [number(end(known.values())) for end in (min, max)]
    few = "" if len(known) == len(rows) else f" ({join(known)})"
    return (ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}") + few


def memory_lines(table: Mapping[str, Any]) -> list[str]:
    """Name the critics that know clearly less of the order where they were trained."""
    lines = []
    for task, falls in table.get("falls", {}).items():
        found = in_order(s for s, fall in falls.items() if (fall.get("low") or 0.0) > BY_HEART)
        rows = table["rows"][task]
        cells = [
            f"{scorer_name(s)} {number(rows[s]['nearer_goal_held_out']['mean'], 3)} and "
            f"{number(rows[s]['nearer_goal_seen']['mean'], 3)}"
            for s in found
        ]
        if cells:
            lines.append(
                f"Learned by heart on {task}: how often the nearer of two goals scores higher, on "
                f"held-out trajectories and on those trained on: {join(cells)}."
            )
    return lines


def temperature_lines(study: StudyResults) -> list[str]:
    """Say at which temperature the cosine rows were trained, and how much that choice decides."""
    sweep = study.tables.get("temperature", {})
    trained_at = study.tables.get("retrieval", {}).get("trained_at", {})
    lines = trained_lines(trained_at) + not_chosen_lines(trained_at, sweep.get("chosen"))
    for task, ranges in sweep.get("tau_ranges", {}).items():
        sound, good = ranges.get("sound"), ranges.get("as_good")
        if sound is not None and good is not None:
            lines.append(
                f"What the temperature decides on {task}: over the {sound['settings']} settings "
                f"of the sweep that do not collapse, the cosine critic's τ goes {_from_to(sound)}; "
                f"over the {good['settings']} whose retrieval AUC is within "
                f"{sweep['as_good_within']:g} of the best, {_from_to(good)}."
            )
    return lines


def trained_lines(trained_at: TrainedAt) -> list[str]:
    """One sentence per temperature: which critics were trained at it, and on which tasks."""
    return [
        f"Trained at temperature {join(used)}: {'; '.join(names)}."
        for used, names in _by_temperature(trained_at).items()
    ]


def not_chosen_lines(trained_at: TrainedAt, chosen: float | None) -> list[str]:
    """Name the critics that were trained at another temperature than the sweep chooses."""
    if chosen is None:
        return []
    found = _by_temperature(trained_at).items()
    others = [name for used, names in found if used != (f"{chosen:g}",) for name in names]
    if not others:
        return []
    return [
        f"Not trained at the temperature that the sweep chooses, {chosen:g} (the highest retrieval "
        f"AUC under binary NCE): {'; '.join(others)}."
    ]


def _by_temperature(trained_at: TrainedAt) -> dict[tuple[str, ...], list[str]]:
    """Temperatures -> ``"Cosine on PointMaze and Puzzle"``, ...

    Controls are left out where there are other critics: they follow the cosine critic.
    """
    there = in_order(scorer for scorers in trained_at.values() for scorer in scorers)
    found: dict[tuple[str, ...], list[str]] = {}
    for scorer in [s for s in there if not is_control(s)] or there:
        tasks: dict[tuple[str, ...], list[str]] = {}
        for task, scorers in trained_at.items():
            if scorer in scorers:
                used = tuple(t if isinstance(t, str) else f"{t:g}" for t in scorers[scorer])
                tasks.setdefault(used, []).append(task)
        for used, names in tasks.items():
            found.setdefault(used, []).append(f"{scorer_name(scorer)} on {join(names)}")
    return found


def _from_to(part: Mapping[str, Any]) -> str:
    low, high = (
        f"{number(part[end], 3)} ({setting_name(part[f'{end}_at'])})"
        for end in ("lowest", "highest")
    )
    return f"from {low} to {high}"


def _method(study: SemanticsResults) -> list[tuple[str, str | None]]:
    config, record = study.config, study.record
    seconds = record.get("seconds")
    return [
        ("Command", record.get("command")),
        ("Tasks", ", ".join(config["tasks"])),
        ("Seeds", ", ".join(str(seed) for seed in config["seeds"])),
        *scale_rows(study.scale),
        ("Triples", _triples(config)),
        ("Support pools", _pools(config) if study.rows("robustness") else None),
        (
            "Independent value",
            f"a TD-Q critic of seed {config['oracle_seed']}, not reported"
            if study.rows("value-oracle")
            else None,
        ),
        (
            "Behaviour models",
            f"diffusion, seeds {join(config['diffusion_seeds'])}"
            if study.rows("value-oracle-diffusion")
            else None,
        ),
        ("Best-of-K", "exact expectation over all subsets; no pool is drawn"),
        (
            "Intervals",
            f"95 %, {config['resamples']:,} bootstrap resamples of whole trajectories, the same "
            "for all critics of a task",
        ),
        *recorded(record),
        ("Scoring took", None if seconds is None else plural(round(seconds), "second")),
    ]


def _triples(config: Mapping[str, Any]) -> str:
    return (
        f"{config['triples']:,} per task from the {config['split']} split, goals 1 to "
        f"{config['max_offset']} steps ahead, γ = {config['gamma']:g}; {config['negatives']} "
        "goals of other trajectories beside each true one; shared by all critics and seeds"
    )


def _pools(config: Mapping[str, Any]) -> str:
    return (
        f"{config['support_queries']:,} queries with {config['support_pool']} candidates, half "
        f"actions of near states ({join(config['n_near'], 'or')} nearest), half of random ones"
    )
