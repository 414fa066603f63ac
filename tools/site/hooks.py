"""Hooks of MkDocs: pages for linked files outside of docs/, and mermaid only where it is used.

The site loads nothing from other hosts: the scripts come from npm packages in `build/docs-npm`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.site.markdown import with_wide_lists

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SCRIPTS = ROOT / "build" / "docs-npm"
# A link and its target, not in code; the target may begin on the next line.
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")
# What a browser fetches while it shows a page.
_FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="(?:https?:)?//[^>]*>"""
    r"""|<link\b(?=[^>]*\brel="(?:stylesheet|icon|preload|preconnect)")[^>]*\bhref="(?:https?:)?//[^>]*>"""
)
# Pages that a search lists first if they match: they explain a name, others use it.
_BOOST = {"options.md": 8, "errors.md": 4, "glossary.md": 2}
_LANGUAGES = {".py": "python", ".toml": "toml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the scripts, and a page for each linked file of the repository outside of docs/."""
    for name in ("mermaid.min.js", "iframe-worker.js"):
        if not (SCRIPTS / name).exists():
            raise PluginError(f"{SCRIPTS / name} is missing: `make docs` fetches it from its npm package")
        files.append(_generated(config, f"assets/{name}", (SCRIPTS / name).read_text()))
    waiting = [DOCS / file.src_uri for file in files if file.src_uri.endswith(".md")]
    added: set[Path] = set()
    while waiting:
        for target in _outside(waiting.pop()) - added:
            added.add(target)
            files.append(_generated(config, _page_of(target), _text_of(target)))
            waiting += [target] if target.suffix == ".md" else []
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Lead links to files outside of docs/ to their pages; set what template and search read."""
    page.meta["search"] = {"boost": _BOOST.get(page.file.src_uri, 1)}
    page.meta["has_mermaid"] = "```mermaid" in markdown
    source = _source_of(page.file.src_uri)
    linked = _LINK.sub(lambda match: _rewritten(match, source, page.file.src_uri), markdown)
    return with_wide_lists(linked)


def on_post_build(*, config: MkDocsConfig) -> None:
    """Fail if a page loads something from another host: the site works without a network."""
    for page in sorted(Path(config.site_dir).rglob("*.html")):
        if found := _FETCHED.search(page.read_text()):
            raise PluginError(f"{page.relative_to(config.site_dir)} is not complete without a network: {found.group()}")


def _rewritten(match: re.Match[str], source: Path, uri: str) -> str:
    target = (source.parent / match["path"]).resolve()
    if not target.is_file() or not target.is_relative_to(ROOT):
        return match.group()
    to = target.relative_to(DOCS).as_posix() if target.is_relative_to(DOCS) else _page_of(target)
    return os.path.relpath(to, os.path.dirname(uri) or ".") + (match["anchor"] or "")


def _outside(page: Path) -> set[Path]:
    targets = {(page.parent / match["path"]).resolve() for match in _LINK.finditer(page.read_text())}
    return {one for one in targets if one.is_file() and one.is_relative_to(ROOT) and not one.is_relative_to(DOCS)}


def _page_of(target: Path) -> str:
    path = target.relative_to(ROOT).as_posix()
    return f"source/{path}" if target.suffix == ".md" else f"source/{path}.md"


def _source_of(uri: str) -> Path:
    inside, outside = DOCS / uri, ROOT / uri.removeprefix("source/")
    return inside if inside.exists() else outside if outside.exists() else outside.with_suffix("")


def _text_of(target: Path) -> str:
    text = target.read_text()
    if target.suffix == ".md":
        return text
    language = _LANGUAGES.get(target.suffix, "text")
    return f"# {target.relative_to(ROOT).as_posix()}\n\n````{language}\n{text}````\n"


def _generated(config: MkDocsConfig, uri: str, content: str) -> File:
    return File.generated(config, uri, content=content)
