"""Every selector that a choice can return: saved, loaded, and picking from whatever is at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.flat import choose
from tests.select.cases import KINDS
from toptail import InputError, ScoredPools, Selector
from toptail.select.base import Pool
from toptail.select.selectors import RandomPick

M, N, K = 5, 6, 4


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    numbers = {name: np.round(rng.normal(0.5, 0.5, (M, N)), 1) for name in "abc"}
    return numbers | {"answer": rng.integers(3, size=(M, N)).astype(str)}


def table() -> pa.Table:
    flat = {name: array.reshape(-1) for name, array in arrays().items()}
    return pa.table({"query": np.repeat(np.arange(M), N), **flat})


def partitioned(folder: Path) -> Path:
    """The table in two files, one in each folder."""
    whole, half = table(), 3 * N
    for name, part in (("part=0", whole[:half]), ("part=1", whole[half:])):
        (folder / name).mkdir(parents=True)
        pq.write_table(part, folder / name / "rows.parquet")
    return folder


def given(folder: Path) -> dict[str, Any]:
    """The same pools in all shapes."""
    pq.write_table(table(), folder / "rows.parquet")
    return {
        "arrays": arrays(),
        "lists": {name: array.tolist() for name, array in arrays().items()},
        "rows": table().to_pylist(),
        "frame": table(),
        "columns": dict(
            zip(table().column_names, map(list, table().to_pydict().values()), strict=True)
        ),
        "file": folder / "rows.parquet",
        "folder": partitioned(folder / "parts"),
    }


@pytest.mark.parametrize("name", KINDS)
def test_it_is_saved_loaded_and_picks_from_every_shape(name: str, tmp_path: Path) -> None:
    selector = KINDS[name].selector.with_k(K)
    selector.save(tmp_path / "selector.json")
    function = getattr(selector, "function", None)
    loaded = Selector.load(tmp_path / "selector.json", function=function)
    assert loaded == selector
    numbers = {n: a for n, a in arrays().items() if n != "answer"}
    codes = np.unique(arrays()["answer"], return_inverse=True)[1].reshape(M, N)
    expected = selector.at(Pool(numbers, codes), K, np.random.default_rng(0))
    picks = loaded.pick(arrays(), seed=3)
    for what, candidates in given(tmp_path).items():
        found = loaded.weights(candidates)
        np.testing.assert_allclose(found.reshape(M, N), expected, err_msg=what)
        assert loaded.pick(candidates, seed=3).tolist() == picks.tolist(), what
    assert ((picks >= -1) & (picks < N)).all()
    one = {n: a[0] for n, a in arrays().items()}
    np.testing.assert_allclose(loaded.weights(one), expected[0])
    assert loaded.pick(one).shape == (1,)


def test_a_random_pick_reads_nothing_and_has_a_seed_of_its_own(tmp_path: Path) -> None:
    RandomPick(seed=7).save(tmp_path / "selector.json")
    loaded = Selector.load(tmp_path / "selector.json")
    assert loaded == RandomPick(seed=7)
    many = {"rm": np.zeros((300, 3))}
    for candidates in (many, many["rm"], {"whatever": np.full((300, 3), "x")}):
        np.testing.assert_allclose(loaded.weights(candidates), 1 / 3)
        np.testing.assert_array_equal(loaded.pick(candidates), loaded.pick(many))
    picked = loaded.pick(many)
    assert (np.bincount(picked, minlength=3) > 60).all()
    assert (picked != RandomPick(seed=8).pick(many)).any()
    assert (picked != loaded.pick(many, seed=1)).any()
    assert loaded.pick({"rm": [1.0, 2.0, 3.0]}).tolist() == loaded.pick([4.0, 5.0, 6.0]).tolist()
    pools = ScoredPools.from_arrays({"rm": many["rm"]}, many["rm"])
    assert loaded.pick(pools).tolist() == picked.tolist()
    with pytest.raises(InputError, match="one pool"):
        loaded.pick({})


def test_a_random_choice_is_deployed_with_the_seed_of_the_choice(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = {"a": rng.normal(size=(60, 8)), "value": rng.normal(size=(60, 8))}
    result = choose(data, selectors=["rank"], resamples=100, repeats=2, seed=5)
    assert result.selector == RandomPick(seed=5)
    assert result.answer.startswith("Nothing is shown to beat a random pick")
    assert "seed" not in result.answer
    result.write(tmp_path / "out")
    loaded = Selector.load(tmp_path / "out" / "selector.json")
    assert loaded == result.selector
    assert loaded.pick({"rm": [1.0, 2.0, 3.0]})[0] in (0, 1, 2)
    assert loaded.pick([{"query": 1, "rm": 1.0}, {"query": 1, "rm": 2.0}])[0] in (0, 1)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("random", "random"),
        ("best", "best(a)"),
        ("best of any member", "best(abc)"),
        ("mean", "mean(abc; raw)"),
        ("mean, standardized", "mean(abc; standardized)"),
        ("pessimistic", "pessimistic(abc; penalty 0.5, raw)"),
        ("mean of ranks", "mean(abc, ranks)"),
        ("rank", "rank(a; rank 3)"),
        ("trim", "trim(a; share 0.4)"),
        ("poisson", "poisson(a; mean 2.5)"),
        ("filter", "filter(a | b; least 0.5)"),
        ("threshold", "threshold(a; least 0.5)"),
        ("soft", "soft(a; beta 2)"),
        ("chi2", "chi2(a; beta 0.4)"),
        ("top", "top(a | b; top 2)"),
        ("majority", "majority"),
        ("weighted_vote", "weighted_vote(a; beta 1.5)"),
        ("best_in_majority", "best_in_majority(a)"),
        ("function", "mine"),
    ],
)
def test_parameters_are_part_of_the_name(name: str, title: str) -> None:
    assert KINDS[name].selector.title == title
