"""Whether stored results follow their JSON Schemas."""

from __future__ import annotations

from typing import Any, Literal

import jsonschema

from toptail.results import schema


def problems(content: Any, what: Literal["audit", "choice"] = "audit") -> list[str]:
    """Where the content of a stored file breaks its schema."""
    validator = jsonschema.Draft202012Validator(schema(what))
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(content)]
