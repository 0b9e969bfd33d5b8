"""A real browser for pages: Debian's Chromium by its own driver, and axe-core in it."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.actions import node

_AXE = node.HERE / "node_modules/axe-core/axe.min.js"
_LEVELS = {"SEVERE", "WARNING"}


SIZES = [(1600, "light"), (400, "dark")]
# One scale of type; nothing is smaller.
TEXT_PX = {12, 14, 16, 18, 22}


def missing():
    """Say what keeps us from using a browser; nothing, if all is there."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"no `{program}` on PATH (`.ci/packages` installs it)"
    return "" if _AXE.is_file() else "axe-core is not installed; `make node` does it"


# The sizes of all letters, as they are drawn.
_TEXT_SIZES = """
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const sizes = new Set();
while (walker.nextNode())
  if (walker.currentNode.data.trim())
    sizes.add(parseFloat(getComputedStyle(walker.currentNode.parentElement).fontSize));
return [...sizes].sort((a, b) => a - b);
"""
# Words of one picture that lie on each other, or end outside of the page.
_OVERLAPS = """
const found = [];
for (const svg of document.querySelectorAll('svg')) {
  const texts = [...svg.querySelectorAll('text')]
    .map(each => [each.textContent, each.getBoundingClientRect()]);
  for (const [i, [a, A]] of texts.entries()) {
    if (A.left < 0 || A.right > document.documentElement.clientWidth) found.push([a, 'outside']);
    for (const [b, B] of texts.slice(i + 1))
      if (A.left < B.right && B.left < A.right && A.top < B.bottom && B.top < A.bottom)
        found.push([a, b]);
  }
}
return found;
"""


@dataclass(frozen=True)
class Browser:
    """One window."""

    driver: Any

    def see(self, page: Path, *, width: int, scheme: str) -> SimpleNamespace:
        """Open a page of this machine, with every fold open."""
        driver = self.driver
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
        )
        driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        driver.get(page.as_uri())
        run = driver.execute_script
        run("for (const fold of document.querySelectorAll('details')) fold.open = true")
        content_width, text, foreign = run(
            "return [document.documentElement.scrollWidth, document.body.innerText,"
            "        document.querySelectorAll('script,img,iframe,a,form,object').length]"
        )
        sizes, overlaps = run(_TEXT_SIZES), run(_OVERLAPS)
        messages = [
            entry["message"] for entry in driver.get_log("browser") if entry["level"] in _LEVELS
        ]
        requests = self._requests()
        run(_AXE.read_text())
        violations = driver.execute_async_script(
            "const done = arguments[0];"
            "axe.run().then(all => done(all.violations.map(each =>"
            "  [each.id, each.nodes.length, each.nodes[0].html.slice(0, 200)])))"
        )
        return SimpleNamespace(
            violations=violations,
            messages=messages,
            requests=requests,
            content_width=content_width,
            text=text,
            text_sizes_px=sizes,
            overlaps=overlaps,
            foreign=foreign,
        )

    def wait_until(self, condition: str, *, seconds: float = 60.0) -> None:
        """Wait until a script of the page returns true."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.driver, seconds).until(lambda driver: driver.execute_script(condition))

    def _requests(self) -> list[str]:
        """Return what was asked for since the last page, but for the page itself."""
        entries = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        sent = [
            entry["params"]["request"]["url"]
            for entry in entries
            if entry["method"] == "Network.requestWillBeSent"
        ]
        return sent[1:]


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser without a window."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    # As root in a container, Chromium has no sandbox of its own.
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


def look_at(browser, file):
    """Look at a page in every size and scheme."""
    for width, scheme in SIZES:
        seen = browser.see(file, width=width, scheme=scheme)
        assert seen.violations == []
        assert (seen.messages, seen.requests) == ([], [])
        assert seen.content_width <= width
        assert set(seen.text_sizes_px) <= TEXT_PX
        assert seen.overlaps == []
        yield seen
