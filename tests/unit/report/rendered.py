"""Markdown as GitHub would show it, taken apart for questions."""

from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options

VOID = {"br", "hr", "img", "input"}


def as_html(markdown):
    """Keep raw HTML, as GitHub does before its sanitiser: the worst case."""
    return cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)


class Page(HTMLParser):
    """Which tags there are, what stands in code, and what stands outside of it."""

    def __init__(self, markdown):
        super().__init__()
        self.open, self.tags, self.code, self.prose, self.rows = [], [], [], "", []
        self.feed(as_html(markdown))
        self.close()

    def handle_starttag(self, tag, _attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "code":
            self.code.append("")
        if tag == "tr":
            self.rows.append(0)
        if tag in {"td", "th"}:
            self.rows[-1] += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"{tag} closes something else"

    def handle_data(self, data):
        if "code" in self.open:
            self.code[-1] += data
        else:
            self.prose += data
