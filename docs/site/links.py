"""A hook of mkdocs: a link that leaves docs/ leads to the file in the repository."""

import re
from pathlib import Path
from typing import Any


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Return the page with each relative link out of docs/ made an address of the repository."""
    docs = Path(config.docs_dir)
    folder = (docs / page.file.src_uri).parent

    def lead_out(link: re.Match[str]) -> str:
        path, hash_mark, anchor = link[1].partition("#")
        target = (folder / path).resolve()
        if ":" in link[1] or not path or target.is_relative_to(docs):
            if target.is_dir() and path:
                return f"]({config.repo_url}/tree/main/{target.relative_to(docs.parent)})"
            return link[0]
        kind = "tree" if target.is_dir() else "blob"
        address = f"{config.repo_url}/{kind}/main/{target.relative_to(docs.parent)}"
        return f"]({address}{hash_mark}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", lead_out, markdown)
