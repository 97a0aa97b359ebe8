"""What is declared before critics are trained on the four navigation tasks.

``declared.json`` holds the main settings, admissions and the criterion of every claim that these
tasks decide, made from the configurations and the claims themselves. It keeps the hash that each
part had when it was first declared: a part that is another one now needs an entry in ``changes``
with the hash that it has now, ``{"date": …, "what": …, "why": …, "parts": {name: hash}}``, written
by hand (null for a part that was dropped). ``python -m toptail_paper.claims.declare`` writes the
rest of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from toptail.io.files import sha256
from toptail.io.json_files import write_json
from toptail.lab.tasks.names import parse_name, published_recipe
from toptail.lab.training.runs import digest
from toptail_paper.claims.claim import Claim
from toptail_paper.claims.criteria import WEAK_MEANS
from toptail_paper.claims.findings import INTERVALS, STATUSES
from toptail_paper.claims.ledger import CLAIMS
from toptail_paper.claims.reported import ANT, HUMANOID, NAVIGATION, POINT, SOCCER, packaged
from toptail_paper.study.main_settings import MAIN_SETTINGS, OTHER_REWARD
from toptail_paper.study.naming import PAPER_TASKS
from toptail_paper.study.store import plain

FORMAT = "toptail-declared-claims-2"

SEED_POLICY = (
    "A run is repeated, with the same seed, only if it is invalid: steps missing, an unreadable "
    "checkpoint, non-finite parameters or losses, a wrong task or configuration, or a confirmed "
    "bug. Results never decide. HumanoidMaze's TD-Q of seed 43, which the paper trained again, is "
    "repeated once, and only in that case."
)
EXCLUSION = (
    "A task enters the selection analysis through the reference ensemble, through the rollouts, or "
    "through both. One that passes neither is reported as excluded with the numbers that exclude "
    "it, and its selection claims are not decided by it. It stays in the score semantics."
)
COLLECTION = "collected anew at the published size by the rules of OGBench's own collection"
SETTINGS = (
    "A task whose data set is found by its fingerprint (results/settled/fingerprint_full_*.json: "
    "within 0.05 of the paper's ten cells by the mean and by each of three seeds, and nearer than "
    "other data) uses it. Where none is found, the main setting is OGBench's default data set of "
    "the task, collected with walkers of the published recipe. The reward is -1/0 in the main "
    "rows; TD-Q and hybrid with the reward 0/1 are further rows where a task lists them. Hybrid's "
    "alpha is a share of the value's range, whatever the reward."
)
VARIANTS = (
    "Runs of other settings are named variants. Those of November 2026 with the walkers of this "
    "package and humanoidmaze-medium-navigate-v0 are the variant '2026-11 navigate, own walkers', "
    "whose statuses the ledger keeps beside the main ones."
)
CHOSEN: Final[Mapping[str, str]] = {
    POINT: "OGBench's default, medium and navigate: no fingerprint was found",
    ANT: "OGBench's default, medium and navigate: no fingerprint was found",
    HUMANOID: "giant and navigate, by fingerprint",
    SOCCER: "OGBench's default, arena and navigate: no fingerprint was found",
}
"""Why each task has the data set that it has."""
BODIES: Final[Mapping[str, tuple[str, ...]]] = {ANT: ("ant",), SOCCER: ("ant", "antball")}
"""The walkers that collect a task's data, where they are of the published recipe."""


def declared_claims() -> Iterator[tuple[str, Claim]]:
    """Study and claim of every claim that a navigation task decides."""
    for study, claims in CLAIMS.items():
        for claim in claims:
            if set(claim.criterion.tasks) & set(NAVIGATION):
                yield study, claim


def declared(before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The content of ``declared.json``; ``before`` is the file as it was declared earlier."""
    parts = dict(_parts())
    now = {name: digest(part) for name, part in parts.items()}
    content = {
        "format": FORMAT,
        "parts": {name: {**part, "hash": now[name]} for name, part in parts.items()},
        "first": now if before is None else before["first"],
        "changes": [] if before is None else before["changes"],
    }
    content = plain(content)
    return {**content, "hash": digest(content)}


def read_declared() -> dict[str, Any]:
    """The file that is part of the package."""
    content: dict[str, Any] = packaged("declared.json")
    return content


def _parts() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "rules", {"statuses": STATUSES, "intervals": INTERVALS, "weak": WEAK_MEANS}
    yield "seed policy", {"rule": SEED_POLICY}
    yield "admission", {"rule": EXCLUSION}
    yield "main settings", {"rule": SETTINGS, "variants": VARIANTS}
    yield "training", _training()
    for task in NAVIGATION:
        yield f"task {task}", _task(task)
    for study, claim in declared_claims():
        yield f"{study}/{claim.id}", _claim(claim)


def _claim(claim: Claim) -> dict[str, Any]:
    """A claim with its criterion in words, and its conditions with their limits."""
    return {
        "sentence": claim.sentence,
        "where": claim.label,
        "tasks": list(claim.criterion.tasks),
        "criterion": claim.stated,
        "conditions": claim.criterion.conditions(),
        "before_the_runs": True,
    }


def _training() -> dict[str, Any]:
    """What all critics share, and every field of each."""
    from toptail.lab.critics.registry import full_size, names
    from toptail.lab.training.config import RunConfig
    from toptail_paper.study.training import TrainingSettings

    declared = names("main", "two_head", "control")
    return {
        **asdict(TrainingSettings()),
        "gamma": RunConfig.gamma,
        "reward": RunConfig.reward,
        "critics": {name: full_size(name).settings() for name in declared},
        "further": {label: labelled_settings(label) for label in OTHER_REWARD},
    }


def labelled_settings(label: str) -> dict[str, Any]:
    """Every field of a critic that is given by a label."""
    from toptail_paper.study.training import TrainingSettings

    run = TrainingSettings().critic(PAPER_TASKS[POINT], label)
    return {"reward": run.reward, **run.build().settings()}


def _task(task: str) -> dict[str, Any]:
    """Data and settings of one task, as the studies' configurations have them."""
    from toptail.lab.tasks.collect import Collection
    from toptail_paper.selection.config import SelectionConfig
    from toptail_paper.selection.deployment.config import DeploymentConfig
    from toptail_paper.semantics.config import SemanticsConfig

    main = MAIN_SETTINGS[task]
    name = main.data
    recipe = published_recipe(parse_name(name))
    assert recipe is not None, name
    return {
        "data": {
            "name": name,
            "chosen": CHOSEN[task],
            "how": COLLECTION,
            "walkers": {body: _walker(body, main.walkers) for body in BODIES.get(task, ())}
            or ("the package's own" if parse_name(name).walks else "none"),
            "seed": Collection.seed,
            **asdict(recipe),
        },
        "further_rows": list(main.also),
        "two_heads": main.two_heads,
        "deployed": main.deployment,
        "rollout_queries_per_group": main.rollout_queries,
        "semantics": SemanticsConfig((name,)).described(),
        "selection": asdict(SelectionConfig.for_task(name)),
        "deployment": asdict(DeploymentConfig.for_task(name)),
    }


def _walker(body: str, folder: Path | None) -> str:
    assert folder is not None, body
    actor = sha256(folder / body / "actor.safetensors")
    return f"{body} of the published recipe, seed 0, {actor[:16]}"


def main() -> None:
    """Write ``declared.json`` beside this file, on top of what was declared before."""
    path = Path(str(files("toptail_paper.claims") / "declared.json"))
    write_json(path, declared(read_declared() if path.is_file() else None))


if __name__ == "__main__":
    main()
