"""What scorers are called, in which order they stand, and which of them a figure shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from toptail.lab.critics.registry import CRITICS, LABEL, MAIN, Entry, Readout, without_settings

PAPER_TASKS: Final = {
    "PointMaze": "pointmaze-medium-navigate-v0",
    "AntMaze": "antmaze-medium-navigate-v0",
    "HumanoidMaze": "humanoidmaze-giant-navigate-v0",
    "AntSoccer": "antsoccer-arena-navigate-v0",
    "Cube-single": "cube-single-play-v0",
    "Cube-double": "cube-double-play-v0",
    "Scene": "scene-play-v0",
    "Puzzle": "puzzle-3x3-play-v0",
}
"""The paper's eight tasks, in its order, and the data set that each stands for here. HumanoidMaze
is the giant maze, by its fingerprint; the library's short name is the medium one, OGBench's
default."""


def data_set(task: str) -> str:
    """The data set of one of the paper's tasks; any other name or path as it is."""
    return PAPER_TASKS.get(task, task)


def task_title(data: str) -> str:
    """The paper's name of a data set; any other name as it is."""
    return next((task for task, name in PAPER_TASKS.items() if name == data), data)


TRIVIAL: Final = {
    "straight": "Straight line to the goal",
    "likely": "Most likely action",
    "random": "Random pick",
}
"""Selection without a critic, and its names in tables."""

TRAINED: Final = "_trained/"
"""``raw_trained/cosine``: the raw critic's embeddings, read as a cosine."""

_WORDS: Final = {"binary_nce": "binary NCE", "symmetric_info_nce": "symmetric InfoNCE"}


IDEALS: Final[Mapping[str, str]] = {
    "q_star": "Ideal: Q*",
    "q_behaviour": "Ideal: Q of the behaviour",
    "log_ratio": "Ideal: log-ratio",
    "gamma_d": "Ideal: γ^d",
}
"""The ideal critics, which are computed and not trained, with their names in tables."""


def split_readout(scorer: str) -> tuple[str, str]:
    """The label of a scorer's critic, and the name of its readout; empty for the deployed one."""
    label, bracket, rest = scorer.rpartition("]")
    critic, _, readout = rest.partition(".")
    return f"{label}{bracket}{critic}", readout


def settings_words(scorer: str) -> str:
    """The settings in a scorer's name, in words; empty without settings."""
    form = LABEL.fullmatch(scorer)
    if form is None:
        return ""
    settings = re.sub(r"(?<=\d)_(?=\d)", "/", form["settings"])  # names of folders have no slash
    return settings.replace("_", " ").replace("=", " ").replace(",", ", ")


def readout(scorer: str) -> Readout | None:
    """The readout of a scorer, by its column name (``raw``); None for a user's scorer."""
    return _lookup(scorer)[1]


def critic_of(scorer: str) -> Entry | None:
    """The critic of a scorer, without its settings; None for a user's scorer."""
    return _lookup(scorer)[0]


def _lookup(scorer: str) -> tuple[Entry, Readout] | tuple[None, None]:
    known = {name: (each, read) for each in CRITICS.values() for name, read in each.scorers.items()}
    return known.get(without_settings(scorer), (None, None))


def ideal_of(scorer: str) -> str | None:
    """The ideal of a scorer; None for a user's scorer, or where it is not known.

    An ideal critic is its own ideal. Of a critic's other readouts, f_raw and f_cos have one.
    """
    if scorer in IDEALS:
        return scorer
    critic, read = _lookup(scorer)
    if critic is None or read is None or read.name == critic.deployed:
        return None if critic is None else critic.ideal
    return "log_ratio" if read.name in ("f_raw", "f_cos") and not read.value else None


def title(scorer: str) -> str:
    """A scorer's name in tables; a user's scorer keeps its own name."""
    read, settings = readout(scorer), settings_words(scorer)
    if read is None:
        return IDEALS.get(scorer, scorer)
    return f"{read.title} ({settings})" if settings else read.title


def scorer_name(scorer: str) -> str:
    """Name of a scorer, or of a ``TRAINING_trained/READOUT``, as a reader sees it."""
    training, is_readout, scalar = scorer.partition(TRAINED)
    if is_readout:
        words = "‖φ‖ alone" if scalar == "phi_norm" else f"{scalar} readout"
        settings = settings_words(training)
        more = f" ({settings})" if settings else ""
        return f"{without_settings(training).capitalize()}-trained{more}, {words}"
    return TRIVIAL.get(scorer) or title(scorer)


def in_order(scorers: Iterable[str]) -> list[str]:
    """The paper's critics first, each with its variants after it; trivial scores, ideals last.

    Readouts stand in the order of their trainings, ‖φ‖ alone as each training's last.
    """
    trivial = list(TRIVIAL)

    def place(scorer: str) -> tuple[bool, int, int, bool, bool]:
        training, _, scalar = scorer.partition(TRAINED)
        critic = without_settings(training)
        known = MAIN.index(critic) if critic in MAIN else len(MAIN)
        variant, norm = critic != training, scalar == "phi_norm"
        after = 1 + trivial.index(scorer) if scorer in TRIVIAL else 0
        return scorer in IDEALS, after, known, variant, norm

    return sorted(dict.fromkeys(scorers), key=place)


def factors_name(scorer: str) -> str:
    """A scorer with the factors of its objective before its name."""
    critic = critic_of(scorer)
    if critic is None or critic.cell is None:
        return scorer_name(scorer)
    words = ", ".join(critic.cell).replace("monte_carlo", "Monte Carlo").replace("boot", "Boot")
    return f"{words}: {scorer_name(scorer)}"


def by_factors(scorers: Iterable[str]) -> list[str]:
    """Classification before regression, and in either the behaviour first, by Monte Carlo."""

    def place(scorer: str) -> tuple[str, str, bool]:
        critic = critic_of(scorer)
        if critic is None or critic.cell is None:
            return "", "", False
        target, fit, policy = critic.cell
        return fit, policy, target == "bootstrapped"

    return sorted(in_order(scorers), key=place)


def is_control(scorer: str) -> bool:
    """Whether a scorer is a control of the paper's critics, which tables show apart.

    The main critics, critics of the group "other" and a user's scorers are no controls.
    """
    critic = critic_of(scorer)
    return critic is not None and critic.group not in ("main", "other")


def is_circular(scorer: str) -> bool:
    """Whether a value network that judges was trained by the recursion that trained the scorer."""
    found = readout(scorer)
    return found is not None and found.value


def drawn(scorers: Iterable[str]) -> list[str]:
    """Which scorers a figure shows: all but those that have a table of their own.

    These are ideals, the two-head variants, and the critics that take the objective apart.
    """
    found, apart = in_order(s for s in scorers if s not in IDEALS), ("two_head", "factor")
    return [s for s in found if (c := critic_of(s)) is None or c.group not in apart] or found


def setting_in(text: str) -> float | str:
    """A setting as it was stored in a task's name: a number where it is one."""
    try:
        return float(text)
    except ValueError:
        return text


def setting_text(setting: float | str) -> str:
    """Write a setting as an axis does."""
    if isinstance(setting, str):
        return _WORDS.get(setting, setting.replace(",steps=", ", ").replace("_", " "))
    return f"{setting:,.0f}" if setting >= 100 else f"{setting:g}"
