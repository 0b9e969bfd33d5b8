"""`${{ }}` and `if:`, evaluated by GitHub's own library in one long-lived Node."""

import json
import re
import subprocess
from dataclasses import dataclass
from typing import Any

from tests.actions import node

# A brace within quotes ends no expression.
EMBEDDED = re.compile(r"\$\{\{((?:[^'}]|'(?:[^']|'')*'|\}(?!\}))*)\}\}")
_FALSE = (None, False, 0, "")


class InvalidExpressionError(Exception):
    """GitHub would refuse this expression, or a context in it, where it stands."""


@dataclass(frozen=True)
class Value:
    """What an expression came to."""

    value: Any
    text: str
    asks_status: bool

    @property
    def is_true(self):
        return self.value not in _FALSE


class Expressions:
    """Evaluates expressions until it is closed."""

    def __init__(self):
        self._node = subprocess.Popen(
            ["node", node.HERE / "expressions.mjs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._node.communicate(timeout=60)

    def evaluate(self, expression, contexts, status="success"):
        assert self._node.stdin
        assert self._node.stdout
        question = {"expression": expression, "contexts": contexts, "status": status}
        self._node.stdin.write(json.dumps(question) + "\n")
        self._node.stdin.flush()
        answer = json.loads(self._node.stdout.readline())
        if "error" in answer:
            raise InvalidExpressionError(f"{expression}: {answer['error']}")
        return Value(**answer)

    def filled(self, text, contexts, status="success"):
        """Return the text with the values of its expressions: what YAML calls true is "true"."""
        if text is None:
            return ""
        if isinstance(text, bool):
            return "true" if text else "false"
        return EMBEDDED.sub(
            lambda found: self.evaluate(found[1].strip(), contexts, status).text, str(text)
        )

    def holds(self, condition, contexts, status):
        """Whether a step runs: without a word on the status, only after success."""
        text = str(condition if condition not in (None, "") else "success()").strip()
        if whole := EMBEDDED.fullmatch(text):
            text = whole[1].strip()
        found = self.evaluate(text, contexts, status)
        return found.is_true and (found.asks_status or status == "success")
