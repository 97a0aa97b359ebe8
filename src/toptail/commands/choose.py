"""``toptail choose``: from a table of scores to what to deploy."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from toptail.api import TableColumns, choose
from toptail.commands.flags import (
    DECIDE,
    OUTPUT,
    SCALE,
    Column,
    Count,
    JudgedFlags,
    Names,
    Tables,
    Words,
    check_tables,
    command_line,
    filled,
    names,
    source,
)
from toptail.commands.terminal import progress_bar, say
from toptail.errors import InputError
from toptail.io.files import check_folder
from toptail.progress import Caller, called_by
from toptail.select.inputs import ChoiceSettings


@dataclass(frozen=True, kw_only=True)
class Choose(JudgedFlags):
    """Choose what to deploy: selector, parameters and K, with its value and how stable that is.

      toptail choose scores.parquet --scores reward --k-max 64 --cost 0.001

    The table is one that 'toptail audit' takes. The choice is made on all queries; the intervals of
    the deployed selector's value and of its gain over plain best-of-K allow for the choice.
    """

    tables: Tables
    """The table of scored candidates with their values; several tables are one after the other."""
    answer: Column = None
    """The column of answers to vote on; by default 'answer'."""
    filters: Annotated[Words, tyro.conf.arg(metavar="COLUMN,...")] = ()
    """Number columns that may serve as filters; a true/false 'support' does without being named."""
    selectors: Annotated[Names, DECIDE] = ()
    """What to try: best, rank, trim, soft, poisson, threshold, mean, min, pessimistic, filter, top,
    majority, weighted_vote, best_in_majority, chi2, each with a parameter (trim:0.1) or
    without; or file.py:function. By default a sensible set for the columns that are there."""
    k_max: Annotated[Count, DECIDE] = None
    """The largest number of candidates to look at; by default the smallest pool."""
    cost: Annotated[float, DECIDE] = ChoiceSettings.cost
    """Price of a candidate in units of the value."""
    margin: Annotated[float, DECIDE, tyro.conf.arg(metavar="SHARE")] = ChoiceSettings.margin
    """A simpler selector is chosen within this share of the headroom of the best."""
    abstain: Annotated[float | None, DECIDE, tyro.conf.arg(metavar="VALUE")] = None
    """What no answer is worth; without it selectors that abstain are shown and not chosen."""
    level: Annotated[float, DECIDE] = ChoiceSettings.level
    """Confidence of intervals."""
    out: Annotated[Path, OUTPUT] = Path("toptail-choice")
    """Folder for choice.json, selector.json, choice.md, choice.tex and report.html."""
    resamples: Annotated[int, SCALE] = ChoiceSettings.resamples
    """How often the choice is made again, with queries weighed at random, for the intervals."""
    seed: Annotated[int, SCALE] = ChoiceSettings.seed
    """Seed of all that is drawn."""

    def run(self) -> int:
        check_folder(self.out)
        same = ("k_max", "cost", "min_pool", "margin", "abstain", "resamples", "level", "seed")
        named = {"scores": names(self.scores), "filters": names(self.filters)}
        check_tables(self.tables)
        with progress_bar() as tick, called_by(Caller(command_line(), tick)):
            result = choose(
                source(self.tables),
                selectors=[_selector(word) for word in names(self.selectors)] or None,
                columns=filled(TableColumns, self, **named, query=self.query_columns()),
                judged=self.judged(),
                **{name: getattr(self, name) for name in same},
            )
        page = result.write(self.out)
        say(result.summary())
        say(f"Selector: {self.out / 'selector.json'}\nReport: {page}")
        return 0


def _selector(word: str) -> Any:
    """A selector's word as it is, or the function that ``file.py:name`` names."""
    path, ending, name = word.partition(".py:")
    if not ending:
        return word
    file = Path(path + ".py")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise InputError(f"--selectors {word}: there is no file {file}.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise InputError(f"--selectors {word}: {file} has no function '{name}'.")
    return function
