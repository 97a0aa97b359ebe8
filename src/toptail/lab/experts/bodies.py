"""The bodies by name."""

from __future__ import annotations

from toptail.errors import InputError
from toptail.lab.experts.ant import Ant
from toptail.lab.experts.antball import AntBall
from toptail.lab.experts.body import Body
from toptail.lab.experts.humanoid import Humanoid

BODIES: dict[str, type[Body]] = {body.name: body for body in (Ant, AntBall, Humanoid)}


def body_named(name: str) -> type[Body]:
    """Return the body, or say which there are."""
    if name not in BODIES:
        raise InputError(f"There is no body '{name}': expected one of {', '.join(BODIES)}.")
    return BODIES[name]
