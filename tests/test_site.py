"""The documents as a site: every page is in its menu, and every link leads somewhere."""

import html
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

import rackloom

ROOT = Path(__file__).parent.parent
LEAD = re.compile(r'<(?:a|link|img|script) [^>]*(?:href|src)="([^"]+)"')
PLACE = re.compile(r'\b(?:id|name)="([^"]+)"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without what `cargo doc` writes."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    # Strict: a page that the menu lacks, or a link that leads nowhere, is a failure.
    assert done.returncode == 0, done.stderr
    return folder


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {page: page.read_text() for page in sorted(site.rglob("*.html"))}
    places = {page: {html.unescape(p) for p in PLACE.findall(text)} for page, text in pages.items()}
    lost = []
    count = 0
    for page, text in pages.items():
        for found in LEAD.findall(text):
            target, _, anchor = unquote(html.unescape(found)).partition("#")
            if "://" in target or target.startswith(("mailto:", "data:")):
                continue
            count += 1
            file = (page.parent / target).resolve() if target else page
            file = file / "index.html" if file.is_dir() else file
            # What `cargo doc` writes is not there.
            if file.is_relative_to(site / "rust") or page.name == "404.html":
                continue
            if not file.exists() or (anchor and anchor not in places.get(file, {anchor})):
                lost.append(f"{page.relative_to(site)}: {found}")
    assert lost == []
    assert count > len(pages), "no link seen: the check sees nothing"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r'<(?:link|img|script) [^>]*(?:href|src)="(https?:[^"]+)"')
    pages = {page.name: loaded.findall(page.read_text()) for page in site.rglob("*.html")}
    assert [page for page, found in pages.items() if found] == []


def test_public_names_of_the_package_are_documented(site: Path) -> None:
    text = (site / "api" / "python.html").read_text()
    assert [name for name in rackloom.__all__ if f'id="rackloom.{name}"' not in text] == []
