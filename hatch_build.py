"""What a package index shows of README.md: its links lead to the files of the tag."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")


class Readme(MetadataHookInterface):
    """hatchling calls it for each build, since pyproject.toml leaves `readme` to it."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add README.md to the metadata of the package."""
        address, tag = metadata["urls"]["Repository"], f"v{metadata['version']}"

        def lead_out(link: re.Match[str]) -> str:
            kind = "raw" if link[1].endswith(".png") else "blob"
            return f"]({address}/{kind}/{tag}/{link[1]})"

        text = _LINK.sub(lead_out, Path(self.root, "README.md").read_text("utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
