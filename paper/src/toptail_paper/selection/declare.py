"""The criteria of a study, written down before anything is scored and held against every stage."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from toptail.errors import InputError, option
from toptail.io.json_files import read_json, write_json
from toptail.lab.store.units import plain
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.training.run_files import differences, digest
from toptail_paper.selection.config import SelectionConfig
from toptail_paper.selection.files import SelectionFolder

_FORMAT = "toptail-declared-1"

CRITERIA = ("prespecified_group", "resolvability", "spearman")
"""What decides whether the reference ensemble may judge."""


def declaration(config: SelectionConfig, queries: FrozenQueries) -> dict[str, Any]:
    """What ``declared.json`` holds for a study, without its hash."""
    reference, rollouts = asdict(config.reference), asdict(config.rollouts)
    return plain(
        {
            "format": _FORMAT,
            "task": config.task,
            "query_sha256": queries.sha256,
            "groups": queries.config.groups(),
            **{name: reference.pop(name) for name in CRITERIA},
            "e_min": rollouts.pop("e_min"),
            "reference": reference,
            "rollouts": rollouts,
            "support": {**asdict(config.support), "threshold": config.support.rule()},
            "pools": {**asdict(config.pools), "sampler": "ancestral"},
            "k": config.ks,
            "seeds": config.seeds,
            "inclusion": (
                "a task enters through the reference ensemble, the simulator's rollouts, or both; "
                "a task that passes neither is reported as excluded"
            ),
        }
    )


def declare(
    folder: SelectionFolder, config: SelectionConfig, queries: FrozenQueries
) -> dict[str, Any]:
    """Write ``declared.json``, or check that the one that is there says the same.

    Nothing may have been scored without it. Returns the declaration with its ``hash``.
    """
    if folder.declared.is_file():
        return require_declared(folder, config, queries)
    scored = folder.scored()
    if scored:
        raise InputError(
            f"{scored[0]} was there before {folder.declared}: criteria are declared before "
            "anything is scored, so declare in a folder without scores, values and rollouts."
        )
    content = declaration(config, queries)
    content["hash"] = digest(content)
    write_json(folder.declared, content)
    return content


def require_declared(
    folder: SelectionFolder, config: SelectionConfig, queries: FrozenQueries
) -> dict[str, Any]:
    """Read ``declared.json`` if it says what the study is about to do; refuse it otherwise."""
    content = read_declared(folder)
    stated = {name: entry for name, entry in content.items() if name != "hash"}
    changed = differences(stated, declaration(config, queries))
    if changed:
        raise InputError(
            f"{folder.declared} declares other criteria than those asked for (first the declared "
            f"one): {'; '.join(changed)}. Nothing is scored against changed criteria: use the "
            f"declared ones, or declare anew {_where(folder)}."
        )
    return content


def _where(folder: SelectionFolder) -> str:
    """Where criteria can be declared anew."""
    return f"in another {option('out')}" if folder.scored() else f"with {option('declare')}"


def read_declared(folder: SelectionFolder) -> dict[str, Any]:
    """Read ``declared.json``, and refuse one that was changed after it was written."""
    path = folder.declared
    if not path.is_file():
        raise InputError(
            f"{path} does not exist: declare the criteria first, with {option('declare')}."
        )
    content = read_json(path)
    sound = isinstance(content, dict) and content.get("format") == _FORMAT
    if not sound or content.get("hash") != digest(
        {name: entry for name, entry in content.items() if name != "hash"}
    ):
        raise InputError(
            f"{path} is not a declaration, or was changed after it was written (its hash does not "
            "fit): put back the file that was declared, or declare anew in another "
            f"{option('out')}."
        )
    declared: dict[str, Any] = content
    return declared
