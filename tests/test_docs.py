"""What the documents say is so: links lead somewhere, examples run, scenarios are accepted."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import rackloom

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("crates/**/README.md"),
        *ROOT.glob("fuzz/*.md"),
    ]
)
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """The places in a page to which a link may lead."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    kept = (re.sub(r"[^\w\- ]", "", head.lower()) for head in heads)
    return {head.replace(" ", "-") for head in kept}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for match in LINK.finditer(page.read_text()):
        target = match.group(1) or match.group(2)
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name(page)}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{name(page)}: {target}"


def blocks(language: str) -> Iterator[Any]:
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        for index, (found, text) in enumerate(FENCE.findall(page.read_text())):
            if found == language:
                yield pytest.param(text, id=f"{name(page)}-{index}")


@pytest.mark.parametrize("text", list(blocks("toml")))
def test_scenarios_in_the_documents_are_accepted(text: str) -> None:
    scenario = tomllib.loads(text)
    # A fragment shows some tables; what it leaves out is as simple as can be.
    scenario.setdefault("workload", {"kind": "incast", "senders": 1, "size": "1 KB"})
    scenario.setdefault("run", {"flows": 10})
    scenario.setdefault("fabric", {"kind": "shoal", "nodes": 64})
    rackloom.resolve(scenario)


@pytest.mark.parametrize("text", list(blocks("python")))
def test_python_in_the_documents_runs(text: str, here: Path) -> None:
    (here / "examples").symlink_to(ROOT / "examples")
    exec(compile(text, "<document>", "exec"), {})  # noqa: S102 - our own documents


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=name)
def test_examples_are_accepted(path: Path) -> None:
    rackloom.resolve(path)


def commands() -> Iterator[Any]:
    """Every command line that a document shows."""
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        for line in re.findall(r"^    (rackloom .*)$", page.read_text(), re.M):
            text = re.sub(r"\s+#.*$", "", line)
            yield pytest.param(text, id=f"{name(page)}: {text}")


@pytest.mark.parametrize("line", list(commands()))
def test_commands_in_the_documents_are_understood(line: str, command: Any) -> None:
    words = shlex.split(line.partition(">")[0])[1:]
    # `--help` after a command line: every word before it is parsed, nothing is run.
    verb = words[0]
    done = command(*words[: 2 if verb == "aquila" else 1], "--help")
    assert done.returncode == 0, done.stderr
    for option in (word for word in words if word.startswith("--")):
        assert option.split("=")[0] in done.stdout, f"{line}: {option}"
    if verb in {"list", "describe", "schema"}:
        assert command(*words).returncode == 0, line
    # A file that is there, and for this verb: `run` takes one fabric.
    for path in (ROOT / word for word in words[1:] if word.startswith("examples/")):
        fabrics = tomllib.loads(path.read_text())["fabric"]
        assert verb != "run" or isinstance(fabrics, dict) or len(fabrics) == 1, line


def test_the_documents_name_every_key_of_the_summary(here: Path) -> None:
    page = (ROOT / "docs" / "results.md").read_text()
    scenario = {
        "run": {"flows": 50},
        "workload": {"kind": "poisson", "load": 0.3, "sizes": {"kind": "fixed", "size": "2 MB"}},
        "fabric": {"kind": "shoal", "nodes": 8},
    }
    result = rackloom.run(scenario, out=here / "run")
    own = {key: value for key, value in result.summary.items() if key != "shoal"}
    missing = [key for key in leaves(own) if f"`{key}`" not in page]
    assert missing == []
    tables = [name for table in (result.flows, result.series) for name in table.column_names]
    common = [name for name in tables if not name.startswith("stage_")]
    shoal = (ROOT / "docs" / "shoal.md").read_text()
    assert [name for name in common if f"`{name}`" not in page + shoal] == []
    stages = [name for name in tables if name.startswith("stage_")]
    assert stages
    assert [name for name in stages if f"`{name}`" not in shoal] == []


# Families of keys that the page describes once.
FAMILIES = [
    (
        re.compile(r"^(fct|slowdown|slowdown_common)\.(short|medium|long|all)\.(\w+)$"),
        r"\1.CLASS.\3",
    ),
]


def leaves(value: Any, path: str = "") -> list[str]:
    """The paths of all leaves, families folded."""
    if isinstance(value, dict):
        found = [leaf for key in value for leaf in leaves(value[key], f"{path}.{key}".lstrip("."))]
        return sorted(set(found))
    for pattern, instead in FAMILIES:
        path = pattern.sub(instead, path)
    return [path]


def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(rackloom.schema())


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=name)
def test_examples_keep_to_the_schema(path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(rackloom.schema())
    validator().validate(tomllib.loads(path.read_text()))


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        (None, "fabrik", {}),
        ("fabric", "nodse", 64),
        ("fabric", "nodes", "many"),
        ("fabric", "slot", "23 parsecs"),
        ("workload", "load", "much"),
        ("workload", "kind", "torrent"),
    ],
)
def test_the_schema_refuses_what_the_command_refuses(
    table: str | None, key: str, value: object
) -> None:
    scenario = tomllib.loads((ROOT / "examples" / "shoal-rack.toml").read_text())
    (scenario if table is None else scenario[table])[key] = value
    assert not validator().is_valid(scenario)
    with pytest.raises(rackloom.InputError):
        rackloom.resolve(scenario)
