"""Pages and comments as a browser would show them, taken apart for questions."""

from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options

VOID = {"meta", "use", "line", "rect", "circle", "path", "br", "hr", "img", "input"}


def as_html(markdown):
    """Keep raw HTML, as GitHub does before its sanitiser: the worst case."""
    return cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)


class Elements(HTMLParser):
    """The elements of HTML with their attributes, and what is left open."""

    def __init__(self, html):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(html)
        self.close()

    @property
    def tags(self):
        return [tag for tag, _ in self.seen]

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag, f"{tag} closes something else"


class Page(Elements):
    """Markdown as GitHub would show it: what stands in code, what outside, the cells of rows."""

    def __init__(self, markdown):
        self.code, self.prose, self.rows = [], "", []
        super().__init__(as_html(markdown))

    def handle_starttag(self, tag, attrs):
        super().handle_starttag(tag, attrs)
        if tag == "code":
            self.code.append("")
        if tag == "tr":
            self.rows.append(0)
        if tag in {"td", "th"}:
            self.rows[-1] += 1

    def handle_data(self, data):
        if "code" in self.open:
            self.code[-1] += data
        else:
            self.prose += data
