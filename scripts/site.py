"""Gathers the pages of the documents' site (mkdocs.yml), and what they link to.

A page of the site stands at the path that its Markdown file has in the repository. A file that is
no page and is linked to (a scenario, a source file) becomes one that shows it, and a folder one
that lists it. `api/python.md` is made of the package's docstrings, `api/rust.md` leads to what
`cargo doc` has written.
"""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s]+)(\))")
LANGUAGES = {".rs": "rust", ".py": "python", ".toml": "toml", ".json": "json", ".csv": "text"}


def tracked() -> list[str]:
    """Every file of the project, by its path."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)  # noqa: S603
    paths = (path for path in listed.stdout.decode().split("\0") if path)
    return sorted(path for path in paths if (ROOT / path).is_file())


def links(text: str) -> list[str]:
    """Where the links of a page lead to inside the repository, as they are written."""
    found = (match[2].partition("#")[0] for match in LINK.finditer(text))
    return [target for target in found if target and "://" not in target]


def resolve(page: str, target: str) -> str | None:
    """The path in the repository that a link of a page means; ``None``: it leads out of it."""
    path = (ROOT / page).parent.joinpath(target).resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else None


def place(path: str, pages: set[str]) -> str:
    """Where the site has what stands at this path in the repository."""
    if path in pages or path.endswith((".css", ".png", ".svg")):
        return path
    if f"{path}/README.md" in pages:
        return f"{path}/README.md"
    return f"{path}/index.md" if (ROOT / path).is_dir() else f"{path}.md"


def cell_text(cell: dict[str, Any]) -> str:
    """A cell of a notebook as Markdown."""
    text = "".join(cell["source"])
    return text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"


def shown(path: str) -> str:
    """A page that shows a file or a folder."""
    file = ROOT / path
    if file.is_dir():
        rows = sorted(entry.name for entry in file.iterdir() if not entry.name.startswith("."))
        return f"# {path}\n\n" + "\n".join(f"- `{row}`" for row in rows) + "\n"
    if file.suffix == ".ipynb":
        return "\n\n".join(cell_text(cell) for cell in json.loads(file.read_text())["cells"])
    language = LANGUAGES.get(file.suffix, "text")
    return f"# `{path}`\n\n`````{language}\n{file.read_text()}\n`````\n"


def rust_api() -> str:
    """The page that leads to the crates' documentation."""
    rows = []
    for manifest in sorted(path for path in tracked() if path.endswith("/Cargo.toml")):
        table = tomllib.loads((ROOT / manifest).read_text())
        if not manifest.startswith("crates/") or "package" not in table:
            continue
        package = table["package"]
        library = table.get("lib", {}).get("name", package["name"].replace("-", "_"))
        link = f'<a href="../rust/{library}/index.html"><code>{package["name"]}</code></a>'
        rows.append(f"| {link} | {package['description']} |")
    head = "# Rust\n\n[What may know whom](../ARCHITECTURE.md#the-house).\n\n"
    return head + "| crate | what it is |\n| --- | --- |\n" + "\n".join(rows) + "\n"


PYTHON_API = "# Python\n\nHow to use it: [in Python](../docs/python.md).\n\n::: rackloom\n"


def on_files(given: Files, config: MkDocsConfig) -> Files:
    """Gathers pages, pictures, and files that pages link to."""
    all_paths = tracked()
    pages = {path for path in all_paths if path.endswith(".md")}
    wanted: set[str] = {"docs/site.css", "examples/shoal.ipynb"}
    for page in pages:
        for target in links((ROOT / page).read_text()):
            path = resolve(page, target)
            if path is not None and (ROOT / path).exists():
                wanted.add(path)
    # Of what was given, the theme's own.
    files = Files([file for file in given if file.src_dir != config.docs_dir])

    def add(path: str) -> None:
        files.append(File(path, str(ROOT), config.site_dir, config.use_directory_urls))

    for path in sorted(pages):
        add(path)
    for path in sorted(wanted - pages):
        site = place(path, pages)
        if site == path:
            add(path)
        elif site not in pages:
            file = File.generated(config, site, content=shown(path))
            file.inclusion = file.inclusion.__class__.NOT_IN_NAV
            files.append(file)
    files.append(File.generated(config, "api/python.md", content=PYTHON_API))
    files.append(File.generated(config, "api/rust.md", content=rust_api()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links to files of the repository into links to the pages that show them."""
    del config
    source = page.file.src_uri
    pages = {file.src_uri for file in files if file.src_uri.endswith(".md")}

    def lead(match: re.Match[str]) -> str:
        target, hash_mark, anchor = match[2].partition("#")
        path = resolve(source, target) if target and "://" not in target else None
        if path is None or not (ROOT / path).exists():
            return match[0]
        site = place(path, pages)
        tail = site.removeprefix(path) if site != path else ""
        return f"{match[1]}{target.rstrip('/')}{tail}{hash_mark}{anchor}{match[3]}"

    return LINK.sub(lead, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Puts what `cargo doc` has written beside the pages, where the caller says that it has."""
    if folder := os.environ.get("RACKLOOM_RUST_DOCS"):
        shutil.copytree(folder, Path(config.site_dir) / "rust")
