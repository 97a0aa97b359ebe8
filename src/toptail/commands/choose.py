"""``toptail choose``: from a table of scores to what to deploy."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from toptail.api import CrossFit, HowJudged, TableColumns, choose
from toptail.commands.lists import filled, names, unjudged, value_range
from toptail.commands.options import Words, command_line
from toptail.commands.progress import progress_bar
from toptail.commands.terminal import say
from toptail.errors import InputError
from toptail.io.files import check_folder
from toptail.progress import Caller, called_by
from toptail.select.comparison import ChoiceSettings

_Column = Annotated[str | None, tyro.conf.arg(metavar="COLUMN")]


@dataclass(frozen=True)
class Choose:
    """Choose what to deploy: selector, parameters and K, with its value and how stable that is.

    The table is one that 'toptail audit' takes. The choice is made on all queries; the intervals of
    the deployed selector's value and of its gain over plain best-of-K allow for the choice.
    """

    table: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TABLE")]
    """The table of scored candidates with their values."""
    out: Path = Path("toptail-choice")
    """Folder for choice.json, selector.json, choice.md, choice.tex and report.html."""
    selectors: Annotated[Words, tyro.conf.arg(metavar="A,B,...")] = ()
    """What to try: best, rank, trim, soft, poisson, threshold, mean, min, pessimistic, filter, top,
    majority, weighted_vote, best_in_majority, chi2, each with a parameter (trim:0.1) or
    without; or file.py:function. By default a sensible set for the columns that are there."""
    k_max: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """The largest number of candidates to look at; by default the smallest pool."""
    cost: float = ChoiceSettings.cost
    """Price of a candidate in units of the value."""
    filter: Annotated[Words, tyro.conf.arg(metavar="COLUMN,...")] = ()
    """Number columns that may serve as filters; a true/false 'support' does without being named."""
    answer: _Column = None
    """The column of answers to vote on; by default 'answer'."""
    scores: Annotated[Words, tyro.conf.arg(metavar="A,B,...")] = ()
    """Score columns, separated by commas; by default every number column that may be one."""
    values: _Column = None
    """The value column to judge by; by default 'value' or 'correct'."""
    p_judged: _Column = None
    """Chances with which candidates were chosen for judging; by default 'p_judged'."""
    cheap: _Column = None
    """The value column of a cheap judge, who judged every candidate, beside --values of some."""
    unjudged: Annotated[str | None, tyro.conf.arg(metavar="NUMBER")] = None
    """What a candidate without a value counts as: zero, or a number."""
    plan: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """The plan that 'toptail plan' made of this table."""
    answers: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """What was answered to the plan: query, candidate and value; by default the plan's file."""
    pairs: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Instead of values: judged pairs with the columns query, a, b, wins and p_judged."""
    replicates: Annotated[Words, tyro.conf.arg(metavar="V1,V2,...")] = ()
    """Two or more value columns that are independent replicates of one noisy judge."""
    query: _Column = None
    """The column that says which candidates form one pool; by default 'query'."""
    candidate: _Column = None
    """A column of labels that are unique inside a query; by default 'candidate'."""
    group: _Column = None
    """A column of query labels; by default 'group' where there is one."""
    cluster: _Column = None
    """A column of query labels that are kept together; by default 'cluster'."""
    support: _Column = None
    """A true/false column: is the candidate on the data support; by default 'support'."""
    min_pool: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Leave out pools with fewer candidates; by default those below the 5 % quantile of sizes."""
    value_range: Annotated[Words, tyro.conf.arg(metavar="LO,HI")] = ()
    """The smallest and the largest value there can be, where that is known."""
    margin: float = ChoiceSettings.margin
    """A simpler selector is chosen within this share of the headroom of the best."""
    abstain: Annotated[float | None, tyro.conf.arg(metavar="VALUE")] = None
    """What no answer is worth; without it selectors that abstain are shown and not chosen."""
    folds: int = ChoiceSettings.folds
    """Parts of the queries for the cross-fitted value."""
    repeats: int = ChoiceSettings.repeats
    """How often queries are parted."""
    resamples: int = ChoiceSettings.resamples
    """How often the choice is made again, with queries weighed at random, for the intervals."""
    level: float = ChoiceSettings.level
    """Confidence of intervals."""
    seed: int = ChoiceSettings.seed
    """Seed of all that is drawn."""

    def run(self) -> int:
        """Read, choose, write, and print the summary."""
        check_folder(self.out)
        same = ("k_max", "cost", "min_pool", "margin", "abstain", "resamples", "level", "seed")
        named = {"scores": names(self.scores), "filters": names(self.filter)}
        ends, filler = value_range(self.value_range), unjudged(self.unjudged)
        judged = {"replicates": names(self.replicates), "unjudged": filler, "value_range": ends}
        with progress_bar() as tick, called_by(Caller(command_line(), tick)):
            result = choose(
                self.table,
                selectors=[_selector(word) for word in names(self.selectors)] or None,
                columns=filled(TableColumns, self, **named),
                judged=filled(HowJudged, self, **judged),
                crossfit=filled(CrossFit, self),
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
