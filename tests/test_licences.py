"""Every dependency may be used and shipped: its licence is on the list of deny.toml."""

import importlib.metadata
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from license_expression import get_spdx_licensing

LICENSING = get_spdx_licensing()


@pytest.fixture(scope="module")
def allowed(root: Path) -> set[str]:
    return set(tomllib.loads((root / "deny.toml").read_text())["licenses"]["allow"])


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression can be met with allowed licences alone."""
    # Older crates write MIT/Apache-2.0 for a choice.
    parsed = LICENSING.parse(expression.replace("/", " OR "), validate=True)
    return meets(parsed, allowed)


def meets(parsed: Any, allowed: set[str]) -> bool:
    if isinstance(parsed, LICENSING.OR):
        return any(meets(part, allowed) for part in parsed.args)
    if isinstance(parsed, LICENSING.AND):
        return all(meets(part, allowed) for part in parsed.args)
    return str(parsed) in allowed


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("MIT", True),
        ("MIT/Apache-2.0", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only", False),
        ("(MIT OR GPL-3.0-only) AND GPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("Apache-2.0 WITH LLVM-exception", True),
    ],
)
def test_expressions_are_read_as_they_are_meant(
    expression: str, fine: bool, allowed: set[str]
) -> None:
    assert is_allowed(expression, allowed) is fine


def test_every_crate_has_an_allowed_licence(metadata: Mapping[str, Any], allowed: set[str]) -> None:
    refused = {
        f"{package['name']} {package['version']}": package["license"]
        for package in metadata["packages"]
        if not package["license"] or not is_allowed(package["license"], allowed)
    }
    assert len(metadata["packages"]) > 50
    assert refused == {}


def test_what_the_wheel_needs_has_an_allowed_licence(root: Path, allowed: set[str]) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    for requirement in project["dependencies"]:
        name = requirement.split(">")[0]
        found = importlib.metadata.metadata(name).json
        licence = found.get("license_expression") or found.get("license")
        assert isinstance(licence, str), name
        assert is_allowed(licence, allowed), f"{name}: {licence}"


def test_the_project_has_the_licence_that_it_states(root: Path) -> None:
    cargo = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert cargo["license"] == project["license"] == "Apache-2.0"
    assert "Apache License\n" in (root / "LICENSE").read_text()
