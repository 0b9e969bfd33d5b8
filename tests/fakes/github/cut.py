"""Cuts GitHub's own descriptions of its interface down to what the fake knows, without prose.

    npm install --ignore-scripts --prefix /tmp/octokit @octokit/openapi@23.0.2
    python -m tests.fakes.github.cut /tmp/octokit/node_modules/@octokit/openapi/generated

Writes `description/*.json`. Nothing is added but null, where GitHub sends it and its enum forgets
it.
"""

import json
import sys
from pathlib import Path

from tests.fakes.github.operations import OPERATIONS

HERE = Path(__file__).parent / "description"
SOURCES = {"github.com": "api.github.com.json", "ghes-3.19": "ghes-3.19.json"}
WEBHOOKS = {
    *{"issue-comment-created", "merge-group-checks-requested", "pull-request-closed"},
    *{"pull-request-opened", "pull-request-synchronize", "push", "workflow-dispatch"},
    "workflow-run-completed",
}
# A discriminator only says how to choose among what `oneOf` has checked anyway.
PROSE = {
    *{"discriminator", "example", "examples", "externalDocs", "summary", "tags", "title"},
    *{"x-github", "x-octokit"},
}
# Objects whose keys are names, not words of the description.
NAMED = {"properties", "paths", "schemas", "parameters", "responses", "headers", "requestBodies"}


def main():
    """Write the cut description of every flavour."""
    for flavour, name in SOURCES.items():
        whole = json.loads((Path(sys.argv[1]) / name).read_text(encoding="utf-8"))
        _write(HERE / f"{flavour}.json", cut_openapi(whole))


def cut_openapi(whole):
    """Return the operations, the webhooks, and what they refer to.

    GHES knows merge queues, but its description does not.
    """
    paths = {path: _operations(item) for path, item in whole["paths"].items()}
    hooks = {name: hook for name, hook in whole["x-webhooks"].items() if name in WEBHOOKS}
    kept = {
        "paths": {path: item for path, item in paths.items() if item},
        "x-webhooks": {
            name: hook["post"]["requestBody"]["content"]["application/json"]["schema"]
            for name, hook in hooks.items()
        },
    }
    found = {op["operationId"] for item in kept["paths"].values() for op in item.values()}
    if missing := set(OPERATIONS) - found:
        raise SystemExit(f"not in this description: {sorted(missing)}")
    kept = {part: _without_prose(value, named=True) for part, value in kept.items()}
    return {"openapi": whole["openapi"], **kept, "components": _referred(kept, whole)}


def _operations(item):
    return {
        method: operation
        for method, operation in item.items()
        if isinstance(operation, dict) and operation.get("operationId") in OPERATIONS
    }


def _referred(kept, whole):
    """Return the components that are reached from what is kept, by kind and name."""
    found, waiting = {}, list(_references(kept))
    while waiting:
        _, _, kind, name = waiting.pop().split("/")
        if name not in found.setdefault(kind, {}):
            part = _without_prose(whole["components"][kind][name])
            found[kind][name] = part
            waiting += _references(part)
    return found


def _references(part):
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        part = list(part.values())
    if isinstance(part, list):
        for value in part:
            yield from _references(value)


def _without_prose(part, *, named=False):
    if isinstance(part, list):
        return [_without_prose(value) for value in part]
    if not isinstance(part, dict):
        return part
    kept = {
        key: _without_prose(value, named=key in NAMED and not named)
        for key, value in part.items()
        if named or (key not in PROSE and not (key == "description" and isinstance(value, str)))
    }
    return kept if named else _with_null(kept)


def _with_null(schema):
    """GitHub does send null for these: `conclusion` of a check run that is not completed."""
    values = schema.get("enum")
    if schema.get("nullable") is True and values and None not in values:
        schema["enum"] = [*values, None]
    return schema


def _write(path, cut):
    """One path, webhook or component on a line, so that a diff between releases can be read."""
    lines = []
    for part, value in sorted(cut.items()):
        groups = value.items() if part == "components" else [(None, value)]
        if not isinstance(value, dict):
            lines.append(f"{json.dumps(part)}: {json.dumps(value)}")
            continue
        written = [_group(name, group) for name, group in sorted(groups)]
        inside = written[0] if part != "components" else "{\n" + ",\n".join(written) + "\n}"
        lines.append(f"{json.dumps(part)}: {inside}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _group(name, group):
    entries = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'), sort_keys=True)}"
        for key, value in sorted(group.items())
    )
    prefix = "" if name is None else f"{json.dumps(name)}: "
    return prefix + "{\n" + entries + "\n}"


if __name__ == "__main__":
    main()
