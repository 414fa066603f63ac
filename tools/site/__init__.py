"""The documentation site: `make docs` builds it into build/site, `make docs-serve` serves it.

mkdocs.yml    pages and their order         hooks             links to files, scripts for drawings
docstrings    read for the reference        markdown          how they are rendered
theme         template, icon and styles
"""
