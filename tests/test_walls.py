"""The walls of the house: who may know whom, how large a file may be, where the project stands."""

import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

# Who may name whom; ARCHITECTURE.md says why. A fabric may name what "fabrics" may.
WALLS: dict[str, set[str]] = {
    "kernel": set(),
    "rack": {"kernel"},
    "packets": {"kernel", "rack"},
    "transports": {"kernel", "rack", "packets"},
    "switching": {"kernel", "rack"},
    "fabrics": {"kernel", "rack", "packets", "transports", "switching"},
    "fabrics/aquila-control": {"kernel", "fabrics"},
    "fabrics/aquila-services": {"kernel", "fabrics", "fabrics/aquila-control"},
    "loopback": {"kernel", "rack"},
    "scenario": {"kernel", "rack", "fabrics", "fabrics/aquila-control", "loopback"},
    "report": {"kernel", "rack"},
    "view": {"kernel", "rack", "report"},
    "reproductions": {
        "kernel",
        "rack",
        "switching",
        "fabrics",
        "fabrics/aquila-control",
        "scenario",
        "report",
    },
    "cli": {
        "kernel",
        "rack",
        "scenario",
        "report",
        "view",
        "reproductions",
        "fabrics/aquila-services",
    },
    "python": {"rack", "scenario", "report", "cli"},
}

LINES_MAX = 800

# What no person wrote or reads line by line.
NOT_SOURCE = re.compile(
    r"(^|/)(Cargo\.lock|.*\.min\.js|LICENSE|.*-LICENSE\.txt|.*\.(csv|et|ipynb|parquet|png|svg|ttf))$"
    # Generated from interfaces, and held against them by a test.
    r"|^crates/fabrics/aquila-services/src/proto/(control|etcd)\.rs$"
)


def floor_of(package: Mapping[str, Any], root: Path) -> str:
    """The floor on which a crate of the workspace lies, by its folder."""
    folder = Path(package["manifest_path"]).parent.relative_to(root)
    parts = [part for part in folder.parts if part != "crates"]
    # A crate with a line of its own lies beside the others of its folder.
    own = "/".join(parts)
    return own if own in WALLS else parts[0]


def broken_walls(
    edges: Mapping[tuple[str, str], set[str]], walls: Mapping[str, set[str]]
) -> list[str]:
    """Every dependency that a wall forbids; ``edges`` is from (floor, crate) to floors."""
    return [
        f"{crate} ({floor}) may not depend on {below}"
        for (floor, crate), belows in sorted(edges.items())
        for below in sorted(belows - walls.get(floor, set()))
    ]


def test_lower_floors_know_nothing_of_upper_ones(root: Path, metadata: Mapping[str, Any]) -> None:
    members = {
        p["name"]: p for p in metadata["packages"] if p["id"] in metadata["workspace_members"]
    }
    floors = {name: floor_of(package, root) for name, package in members.items()}
    assert set(floors.values()) == set(WALLS), "a floor is missing in the list of walls, or extra"
    edges = {
        (floors[name], name): {
            floors[d["name"]] for d in package["dependencies"] if d["name"] in floors
        }
        for name, package in members.items()
    }
    assert broken_walls(edges, WALLS) == []
    assert any(below for below in edges.values()), "no dependency seen: the check sees nothing"


def test_the_control_plane_knows_its_own_fabric_alone(metadata: Mapping[str, Any]) -> None:
    found = [p for p in metadata["packages"] if p["name"] == "rackloom-aquila-control"]
    names = {dependency["name"] for package in found for dependency in package["dependencies"]}
    own = {name for name in names if name.startswith("rackloom-")}
    assert own == {"rackloom-aquila", "rackloom-kernel"}


def test_only_the_command_knows_the_machine_s_network(metadata: Mapping[str, Any]) -> None:
    members = [p for p in metadata["packages"] if p["id"] in metadata["workspace_members"]]
    knowing = {
        package["name"]
        for package in members
        if any(
            dependency["name"] in {"tonic", "tokio", "rackloom-aquila-services"}
            for dependency in package["dependencies"]
        )
    }
    assert knowing == {"rackloom-aquila-services", "rackloom-cli", "rackloom-view"}


def features(root: Path, *arguments: str) -> set[str]:
    """Every library that is compiled for these arguments, with its features."""
    command = ["cargo", "tree", "--locked", "--prefix=none", "--format={p} [{f}]", *arguments]
    text = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {line.removesuffix(" (*)") for line in text.splitlines()}


def test_the_package_and_the_pages_need_no_second_compilation(root: Path) -> None:
    # Other features of a library: it and all that depends on it would be compiled once more.
    tests = features(root, "--workspace", "--edges=normal,build,dev,no-proc-macro")
    for selection in ["--workspace", "--package=rackloom-python"]:
        needed = features(root, selection, "--edges=normal,build,no-proc-macro")
        assert len(needed) > 50, "the list is empty: the check sees nothing"
        assert sorted(needed - tests) == [], f"{selection}: state these features in Cargo.toml"


def test_a_broken_wall_is_noticed() -> None:
    edges = {("kernel", "rackloom-kernel"): {"rack"}, ("rack", "rackloom-rack"): {"kernel"}}
    assert broken_walls(edges, WALLS) == ["rackloom-kernel (kernel) may not depend on rack"]


def test_only_the_binding_knows_python(metadata: Mapping[str, Any]) -> None:
    members = [p for p in metadata["packages"] if p["id"] in metadata["workspace_members"]]
    knowing = [
        package["name"]
        for package in members
        if any(dependency["name"].startswith("pyo3") for dependency in package["dependencies"])
    ]
    assert knowing == ["rackloom-python"]


def tracked(root: Path) -> Iterator[tuple[str, str]]:
    """Every text file of the project by its path."""
    # In a checkout what is tracked or about to be; elsewhere (a source archive) what lies there.
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a checkout: no list of the project's files")
    for name in sorted(filter(None, listed.stdout.decode().split("\0"))):
        path = root / name
        if not path.is_file() or NOT_SOURCE.search(name):
            continue
        yield name, path.read_text(encoding="utf-8")


def test_no_file_is_too_long_to_read(root: Path) -> None:
    # A command makes the page of all claims, one row each.
    made = "docs/reproduced.md"
    counts = {name: text.count("\n") for name, text in tracked(root) if name != made}
    assert len(counts) > 100
    assert {name: count for name, count in counts.items() if count > LINES_MAX} == {}


# A path on somebody's machine, or out of the project: true there and nowhere else.
FOREIGN = re.compile(r"(?<![\w.$}])/(?:home|root|Users|work)/\w+|(?:^|[\s\"'(])\.\./shared\b", re.M)


def test_no_file_depends_on_where_it_was_written(root: Path) -> None:
    found = {name: FOREIGN.findall(text) for name, text in tracked(root)}
    assert {name: paths for name, paths in found.items() if paths} == {}
    assert FOREIGN.search("see /ho" + "me/somebody/rackloom"), "the pattern finds nothing"


def test_versions_agree(root: Path) -> None:
    cargo = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]
    python = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    script = (root / "scripts" / "prerequisites").read_text()
    assert f"rust_minimum={cargo['rust-version']}\n" in script
    assert f"python_minimum={python['requires-python'].removeprefix('>=')}\n" in script
    changes = (root / "CHANGELOG.md").read_text()
    assert f"## [{cargo['version']}]" in changes or "## [Unreleased]" in changes
