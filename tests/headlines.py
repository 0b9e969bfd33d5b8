"""How a headline begins, spelled once. `golden/headlines.md` has whole headlines."""

PASS = "✅ Pass (green job): "
WARNED = "⚠️ Pass (green job), with a warning: "
GATE_CHANGED = "⚠️ Pass (green job), and the gate changes: "
FAIL = "❌ Fail (red job): "
NO_ANSWER = "❓ No answer (red job): "


def named_after(opening, text):
    """Return what a headline in `text` names after this opening, which must be there."""
    _, found, names = text.partition(opening)

    assert found, f"expected {opening!r} in {text!r}"
    return names.splitlines()[0]
