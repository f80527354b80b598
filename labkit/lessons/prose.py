"""Markdown, formulas, code and terminal text as HTML that needs nothing but itself."""

from __future__ import annotations

import base64
import io
from collections.abc import Collection
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape
from nbconvert.filters import ansi2html
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer, find_lexer_class_by_name
from pygments.util import ClassNotFound


class Prose(IPythonRenderer):
    """Renders the Markdown cells of one lesson, in order, and collects their headings.

    Args:
        folder: where relative images are; they are embedded.
        pages: names of the lessons that have a page; links to their notebooks lead there.
    """

    def __init__(self, folder: Path, pages: Collection[str]) -> None:
        super().__init__(escape=False, embed_images=True, path=str(folder))
        self.headings: dict[str, tuple[int, str]] = {}  # anchor -> level, text
        self._pages = pages
        self._markdown = MarkdownWithMath(renderer=self)

    def html(self, cell: Any) -> Markup:
        """A Markdown cell as HTML."""
        self.attachments = cell.get("attachments", {})
        return Markup(self._markdown.render(cell.source))

    def heading(self, text: str, level: int, **_: Any) -> str:
        """With the anchor that Jupyter gives it, made unique."""
        words = str(Markup(text).striptags())
        anchor = words.replace(" ", "-")
        while anchor in self.headings:
            anchor += "-"
        self.headings[anchor] = level, words
        return f'<h{level} id="{escape(anchor)}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """To a lesson's page where it is in the report; as mere text where it is not."""
        notebook, _, anchor = url.partition("#")
        name = Path(notebook).stem
        if not notebook.endswith(".ipynb") or "://" in notebook:
            return str(super().link(text, url, title))
        return str(super().link(text, f"{name}.html#{anchor}")) if name in self._pages else text

    def block_code(self, code: str, info: str | None = None) -> str:
        """In the colours of its language, if that is known."""
        try:
            find_lexer_class_by_name((info or "").strip())
        except ClassNotFound:
            info = None
        return str(super().block_code(code, info))

    def inline_math(self, body: str) -> str:
        """A formula as a picture, drawn by matplotlib."""
        from matplotlib import rc_context
        from matplotlib.font_manager import FontProperties
        from matplotlib.mathtext import math_to_image

        picture, font = io.BytesIO(), FontProperties(size=13)
        try:
            with rc_context({"savefig.transparent": True}):
                depth = math_to_image(f"${body}$", picture, prop=font, format="svg", dpi=72)
        except ValueError:  # beyond matplotlib's part of TeX
            return f"<code>{escape(body)}</code>"
        source = base64.b64encode(picture.getvalue()).decode()
        return (
            f'<img class="math" alt="{escape(body)}" style="vertical-align:-{depth:.0f}pt"'
            f' src="data:image/svg+xml;base64,{source}">'
        )

    def block_math(self, body: str) -> str:
        """A formula on a line of its own."""
        return f'<p class="math">{self.inline_math(body.strip())}</p>\n'


def colours() -> Markup:
    """The style sheet of coloured code, for light and for dark screens."""
    light, dark = (HtmlFormatter(style=s).get_style_defs(".highlight") for s in ("xcode", "native"))
    return Markup(f"{light}\n@media screen and (prefers-color-scheme: dark) {{ {dark} }}")


FILTERS = {
    "markdown": lambda text: Prose(Path(), ()).html(NotebookNode(source=text)),
    "python": lambda source: Markup(highlight(source, PythonLexer(), HtmlFormatter())),
    "terminal": lambda text: Markup(ansi2html(text)),  # escapes, and keeps colours
}
