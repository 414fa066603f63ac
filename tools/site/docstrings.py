"""An extension of Griffe, which reads the sources: docstrings as Markdown."""

from __future__ import annotations

from typing import Any

from griffe import Extension, Object

from tools.site.markdown import with_list_of_errors


class MarkdownDocstrings(Extension):
    """Apply `with_list_of_errors` to each docstring that is loaded."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = with_list_of_errors(obj.docstring.value)
