"""What `mkdocs build` does besides: files of the repository become pages, and nothing is fetched.

A link that leads out of `docs/` (`../examples/digits.py`) works on disk; on the site it leads to a page that
shows that file. The commands have a page as well, from the help of each, the public names a list, and the
reference networks an atlas.
"""

from __future__ import annotations

import inspect
import posixpath
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

import fathometer
from fathometer import reference, write_report

ROOT = Path(__file__).parents[2]
PAGES = {
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/RESULTS.md": "benchmark-results.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Markdown of the repository that is a page of the site."""
COMMANDS = "reference/commands.md"
PUBLIC_NAMES = "<!-- public names -->"
ATLAS = "reference-networks.html"  # not the name of a page

_LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
_SOURCE = re.compile(r'href="([^":#]+\.(?:md|ipynb))(#[^"]*)?"')
_LOCAL = re.compile(r'<[^>]+?\b(?:href|src)="([^":#?]+)(?:[#?][^"]*)?"')
_FETCHED = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//[^>]*>"
    r"|url\([\"']?(?:https?:)?//[^)]*\)"
)


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add pages that are not in `docs/`: of the repository, of the commands, of files that are linked to."""
    for path, uri in PAGES.items():
        files.append(File.generated(config, uri, content=(ROOT / path).read_text("utf-8")))
    files.append(File.generated(config, COMMANDS, content=_commands()))
    files.append(File.generated(config, ATLAS, content=_atlas()))
    for path in sorted({path for file in files.documentation_pages() for path in _linked_sources(file)}):
        page = File.generated(config, _page_of(path), content=_listing(path))
        page.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links out of `docs/` into links to those pages, and fill in the list of public names."""
    uri = page.file.src_uri
    if PUBLIC_NAMES in markdown:
        markdown = markdown.replace(PUBLIC_NAMES, _public_names())
    return _LINK.sub(lambda link: f"{link[1]}{_target(link[2], uri)}{link[3]}", markdown)


def on_page_content(html: str, page: Page, files: Files, **_: Any) -> str:
    """In notebooks, turn links to sources into links to pages; elsewhere that is done already."""

    def moved(link: re.Match[str]) -> str:
        uri = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), link[1]))
        target = files.get_file_from_path(uri)
        if target is None:
            raise PluginError(f"{page.file.src_uri}: a link leads to {link[1]}, which is no page")
        return f'href="{target.url_relative_to(page.file)}{link[2] or ""}"'

    return _SOURCE.sub(moved, html) if page.file.src_uri.endswith(".ipynb") else html


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Refuse a page that would fetch something."""
    found = _FETCHED.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri}: the page would fetch {found[0][:200]}")
    return output


def on_post_build(config: MkDocsConfig, **_: Any) -> None:
    """Refuse a site with a link to a file that is not there; the atlas has links in its scripts only."""
    for page in Path(config.site_dir).rglob("*.html"):
        for link in set(_LOCAL.findall(page.read_text("utf-8"))):
            if page.name not in ("404.html", ATLAS) and not (page.parent / unquote(link)).exists():
                raise PluginError(f"{page}: a link leads to {link}, which is not there")


def _target(link: str, uri: str) -> str:
    """Where a link leads on the site, seen from the page `uri`."""
    path = _repository_path(link, uri)
    place = path.removeprefix("docs/") if path.startswith("docs/") else _page_of(path)
    return posixpath.relpath(place, posixpath.dirname(uri) or ".")


def _repository_path(link: str, uri: str) -> str:
    """From a link on a page to a path in the repository."""
    origin = next((path for path, page in PAGES.items() if page == uri), f"docs/{uri}")
    return posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))


def _page_of(path: str) -> str:
    """The page that shows a file from outside `docs/`."""
    return PAGES.get(path) or ("index.md" if path == "README.md" else f"source/{path}.md")


def _linked_sources(file: File) -> list[str]:
    """Files of the repository that a page links to and that are to become pages."""
    if not file.src_uri.endswith(".md"):
        return []
    paths = [_repository_path(link[1], file.src_uri) for link in _LINK.findall(file.content_string)]
    return [path for path in paths if not path.startswith("docs/") and _page_of(path).startswith("source/")]


def _listing(path: str) -> str:
    language = {".py": "python", ".toml": "toml", ".md": "markdown"}.get(Path(path).suffix, "text")
    if not (ROOT / path).is_file():
        raise PluginError(f"a link leads to {path}, which is no file of the repository")
    code = (ROOT / path).read_text("utf-8")
    return f"---\nsearch:\n  exclude: true\n---\n\n# `{path}`\n\n~~~~~{language}\n{code}\n~~~~~\n"


def _atlas() -> str:
    """The atlas of the reference networks, as `fathometer.write_report` writes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_report(reference.load(), Path(folder) / ATLAS, title="Reference networks", atlas=True)
        return path.read_text("utf-8")


def _commands() -> str:
    """The help of every command, as `typer` writes it."""
    command = [sys.executable, "-m", "typer", "fathometer.cli.app", "utils", "docs", "--name", "fathometer"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    if told.returncode:
        raise PluginError(f"the help of the commands: {told.stderr[-500:]}")
    text = re.sub(r"\*\*Commands\*\*:\n\n(\* .*\n)+\n", "", told.stdout)  # whose lines end in dots
    return text.replace("# `fathometer`", "# Commands", 1)


def _public_names() -> str:
    """List the names of `__init__.pyi`, functions first, with signature and first line of the docstring."""
    stub = (ROOT / "src/fathometer/__init__.pyi").read_text("utf-8")
    names = re.findall(r"^from \S+ import (\w+)", stub, re.MULTILINE)
    things = {name: getattr(fathometer, name) for name in names}
    order = sorted(names, key=lambda name: (inspect.ismodule(things[name]), inspect.isclass(things[name])))
    first = {name: (inspect.getdoc(thing) or "").partition("\n")[0] for name, thing in things.items()}
    return "\n".join(f"- `{name}{_signature(things[name])}`<br>{first[name]}" for name in order)


def _signature(thing: Any) -> str:
    """Write a signature with its annotations as in the source; modules and errors have none."""
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Exception)):
        return ""
    signature = inspect.signature(thing)
    text = str(signature).removesuffix(" -> None")
    for annotation in (signature.return_annotation, *(p.annotation for p in signature.parameters.values())):
        if isinstance(annotation, str):
            text = text.replace(repr(annotation), annotation)
    return text
