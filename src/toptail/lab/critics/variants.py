"""Names of critics with settings: ``cosine[temperature=0.1]`` stands beside ``cosine``.

Runs lie in folders of that name, and columns, tables and pages have it. What a setting means
and which values it takes is known to who trains (`toptail.lab.training.options`); here it is text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from toptail.errors import InputError

_FORM: Final = re.compile(
    r"(?P<critic>[^\[\]\s]+)\[(?P<settings>[^\[\]=]+=[^\[\]]+)\](?P<readout>\.\w+)?"
)
_ONE: Final = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<value>[^=]*[^=\s])\s*")


def split_label(label: str) -> tuple[str, dict[str, str]]:
    """The critic of a label, and its settings as they are written; none for a critic's own name."""
    if "[" not in label and "]" not in label:
        return label, {}
    form = _FORM.fullmatch(label)
    found = [] if form is None else [_ONE.fullmatch(x) for x in form["settings"].split(",")]
    settings = {each["name"]: each["value"] for each in found if each is not None}
    if form is None or form["readout"] or len(settings) < len(found):
        raise InputError(
            f"'{label}' is not the name of a critic: expected CRITIC[SETTING=VALUE,...] with each "
            "setting once, as in cosine[temperature=0.1]."
        )
    return form["critic"], settings


def label_of(critic: str, settings: Mapping[str, Any]) -> str:
    """The one spelling of a critic with settings, by their names; without any, the critic's."""
    listed = ",".join(f"{name}={value_text(settings[name])}" for name in sorted(settings))
    return f"{critic}[{listed}]" if listed else critic


def value_text(value: Any) -> str:
    """A setting's value in a label, which is also the name of a folder."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value).replace("/", "_")


def without_settings(scorer: str) -> str:
    """A scorer's name as the registry has it: ``two_head_joint[alpha=2].f_cos`` less the part."""
    form = _FORM.fullmatch(scorer)
    return scorer if form is None else form["critic"] + (form["readout"] or "")


def split_readout(scorer: str) -> tuple[str, str]:
    """The critic of a scorer with its settings, and the name of the readout; empty if deployed."""
    label, bracket, rest = scorer.rpartition("]")
    critic, _, readout = rest.partition(".")
    return f"{label}{bracket}{critic}", readout


def settings_words(scorer: str) -> str:
    """The settings in a scorer's name as a reader sees them; empty where there are none."""
    form = _FORM.fullmatch(scorer)
    if form is None:
        return ""
    return form["settings"].replace("_", " ").replace("=", " ").replace(",", ", ")
