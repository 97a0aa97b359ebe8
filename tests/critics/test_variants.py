"""Critics with settings in their names: one parser, one spelling, one row."""

from __future__ import annotations

import pytest

from toptail.errors import InputError
from toptail.lab.critics.registry import (
    critic_of,
    entry,
    ideal_of,
    label_of,
    readout,
    split_label,
    title,
    without_settings,
)

BOTH = "cosine[contrast=symmetric_info_nce,temperature=0.1]"


def test_a_label_comes_back_in_its_one_spelling() -> None:
    critic, settings = split_label("cosine[ temperature = 0.1 , contrast=symmetric_info_nce ]")
    assert critic == "cosine"
    assert label_of(critic, settings) == BOTH
    assert split_label("raw") == ("raw", {})
    assert label_of("raw", {}) == "raw"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (1.0, "1"), (1e-4, "0.0001"), (0.1 + 0.2, "0.30000000000000004"),
     (True, "on"), (False, "off"), (64, "64"), ("0/1", "0_1")],
)  # fmt: skip
def test_values_are_written_so_that_they_come_back_and_name_folders(
    value: object, text: str
) -> None:
    assert label_of("raw", {"x": value}) == f"raw[x={text}]"
    if isinstance(value, float):
        assert float(text) == value


@pytest.mark.parametrize(
    "label", ["raw[", "raw]", "raw[]", "raw[a]", "raw[a=]", "raw[a=1", "raw[a=1,a=2]",
              "raw[a=1][b=2]", "[a=1]", "raw[a=1].f_cos", "raw[a=1=2]"]
)  # fmt: skip
def test_what_is_no_label_is_refused(label: str) -> None:
    with pytest.raises(InputError, match="is not the name of a critic"):
        split_label(label)


def test_the_registry_reads_a_variant_as_its_critic() -> None:
    assert readout(BOTH) is readout("cosine")
    assert critic_of("two_head_joint[alpha=2].f_cos") is critic_of("two_head_joint.f_cos")
    assert ideal_of(BOTH) == ideal_of("cosine")
    assert entry(BOTH).name == "cosine"
    assert without_settings("two_head_joint[alpha=2].f_cos") == "two_head_joint.f_cos"
    assert without_settings("mine [2024]") == "mine [2024]"


def test_a_reader_sees_the_settings_behind_the_title() -> None:
    assert title("cosine[temperature=0.1]") == "Cosine (temperature 0.1)"
    assert title("raw") == "Raw bilinear"
    assert title("mine [2024]") == "mine [2024]"
