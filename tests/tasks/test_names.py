from __future__ import annotations

import pytest

from toptail.errors import InputError
from toptail.lab.tasks.names import OGBENCH_NAMES, SHORT_NAMES, parse_name, published_recipe


def test_names_are_different_and_their_parts_give_them_back() -> None:
    assert set(SHORT_NAMES.values()) <= set(OGBENCH_NAMES)
    assert len(set(OGBENCH_NAMES)) == len(OGBENCH_NAMES)
    for name in OGBENCH_NAMES:
        task = parse_name(name)
        parts = [task.family, task.variant, task.kind, "v0"]
        assert "-".join(part for part in parts if part) == name


@pytest.mark.parametrize(
    ("name", "environment", "dimensions"),
    [
        ("pointmaze-large-stitch-v0", "pointmaze-large-v0", (2, 2)),
        ("scene-play-v0", "scene-v0", (40, 5)),
        ("puzzle-4x6-noisy-v0", "puzzle-4x6-v0", (115, 5)),
        ("visual-cube-double-play-v0", "visual-cube-double-v0", None),
    ],
)
def test_environment_and_dimensions(
    name: str, environment: str, dimensions: tuple[int, int] | None
) -> None:
    task = parse_name(name)
    assert task.environment == environment
    assert task.dimensions == dimensions


def test_the_papers_name_stands_for_its_data_set() -> None:
    assert parse_name("Cube-double").name == "cube-double-play-v0"
    assert parse_name("cube-double-play-v0").title == "Cube-double"


def test_an_unknown_name_is_refused_with_the_way_to_the_list() -> None:
    with pytest.raises(InputError, match=r"'pointmaze' is not the name .*toptail data list"):
        parse_name("pointmaze")


@pytest.mark.parametrize(
    ("name", "episodes", "rows", "noise"),
    [
        ("pointmaze-medium-navigate-v0", 1000, 1001, 0.5),
        ("antmaze-large-stitch-v0", 5000, 201, 0.2),
        ("humanoidmaze-medium-navigate-v0", 1000, 2001, 0.2),
        ("humanoidmaze-medium-stitch-v0", 5000, 401, 0.2),
        ("humanoidmaze-giant-stitch-v0", 10_000, 401, 0.2),
        ("pointmaze-giant-navigate-v0", 500, 2001, 0.5),
        ("pointmaze-giant-stitch-v0", 5000, 201, 0.5),
        ("antmaze-medium-explore-v0", 10_000, 501, 1.0),
        ("antsoccer-arena-navigate-v0", 1000, 1001, 0.2),
        ("antsoccer-medium-stitch-v0", 8000, 501, 0.2),
        ("cube-triple-play-v0", 3000, 1001, 0.1),
        ("scene-play-v0", 1000, 1001, 0.1),
    ],
)
def test_published_recipes(name: str, episodes: int, rows: int, noise: float) -> None:
    recipe = published_recipe(parse_name(name))
    assert recipe is not None
    assert (recipe.episodes, recipe.rows, recipe.noise) == (episodes, rows, noise)


def test_no_recipe_is_claimed_where_none_is_known() -> None:
    assert published_recipe(parse_name("cube-single-noisy-v0")) is None
