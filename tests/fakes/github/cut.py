"""Cuts GitHub's own descriptions of its interface down to what the fake knows, without prose.

    npm install --ignore-scripts --prefix /tmp/octokit \
        @octokit/openapi@23.0.2 @octokit/graphql-schema@15.26.1
    python -m tests.fakes.github.cut /tmp/octokit/node_modules/@octokit

Writes `description/`. Nothing is added but null, where GitHub sends it and its enum forgets it.
"""

import dataclasses
import json
import sys
from pathlib import Path

import graphql

from tests.fakes.github.operations import OPERATIONS

HERE = Path(__file__).parent / "description"
SOURCES = {
    "github.com": "openapi/generated/api.github.com.json",
    "ghes-3.19": "openapi/generated/ghes-3.19.json",
}
NOTICES = ("openapi/LICENSE", "graphql-schema/LICENSE.md")
WEBHOOKS = frozenset(
    [
        "issue-comment-created",
        "merge-group-checks-requested",
        "pull-request-closed",
        "pull-request-opened",
        "pull-request-synchronize",
        "push",
        "workflow-dispatch",
        "workflow-run-completed",
    ]
)
# What our documents of GraphQL may ask for. What these mention is kept if it is listed too.
GRAPHQL = {
    "Query": "repository",
    "Repository": "pullRequest",
    "PullRequest": "comments",
    "IssueCommentConnection": "nodes pageInfo",
    "IssueComment": "body databaseId isMinimized url viewerDidAuthor",
    "PageInfo": "endCursor hasNextPage",
    "Mutation": "createCommitOnBranch",
    "CreateCommitOnBranchPayload": "commit",
    "Commit": "oid",
}
# A discriminator only says how to choose among what `oneOf` has checked anyway.
PROSE = {
    *{"discriminator", "example", "examples", "externalDocs", "summary", "tags", "title"},
    *{"x-github", "x-octokit"},
}
# Objects whose keys are names, not words of the description.
NAMED = {"properties", "paths", "schemas", "parameters", "responses", "headers", "requestBodies"}


def main():
    """Write the cut descriptions of every flavour."""
    source = Path(sys.argv[1])
    for flavour, name in SOURCES.items():
        whole = json.loads((source / name).read_text(encoding="utf-8"))
        _write(HERE / f"{flavour}.json", cut_openapi(whole))
    schema = (source / "graphql-schema/schema.graphql").read_text(encoding="utf-8")
    (HERE / "schema.graphql").write_text(cut_graphql(schema), encoding="utf-8")
    notices = [(source / name).read_text(encoding="utf-8").strip() for name in NOTICES]
    (HERE / "LICENSE").write_text("\n\n---\n\n".join(notices) + "\n", encoding="utf-8")


def cut_openapi(whole):
    """Return the operations, the webhooks, and what they refer to."""
    paths = {path: _operations(item) for path, item in whole["paths"].items()}
    kept = {
        "paths": {path: item for path, item in paths.items() if item},
        "x-webhooks": {name: _payload(hook) for name, hook in _webhooks(whole)},
    }
    _refuse_unknown(kept)
    kept = {part: _without_prose(value, named=True) for part, value in kept.items()}
    return {"openapi": whole["openapi"], **kept, "components": _referred(kept, whole)}


def _operations(item):
    return {
        method: operation
        for method, operation in item.items()
        if isinstance(operation, dict) and operation.get("operationId") in OPERATIONS
    }


def _webhooks(whole):
    """GHES knows merge queues, but its description does not."""
    return [(name, hook) for name, hook in whole["x-webhooks"].items() if name in WEBHOOKS]


def _payload(webhook):
    return webhook["post"]["requestBody"]["content"]["application/json"]["schema"]


def _refuse_unknown(kept):
    found = {op["operationId"] for item in kept["paths"].values() for op in item.values()}
    if missing := set(OPERATIONS) - found:
        raise SystemExit(f"not in this description: {sorted(missing)}")


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


def cut_graphql(text):
    """Return the types of `GRAPHQL` with these fields, and the inputs that their arguments need."""
    # The published schema repeats a few fields, which the strict checks would refuse.
    document = graphql.parse(text, no_location=True)
    definitions = [d for d in document.definitions if isinstance(d, graphql.TypeDefinitionNode)]
    types = {definition.name.value: definition for definition in definitions}
    kept = [_fields_cut(types[name], set(fields.split())) for name, fields in GRAPHQL.items()]
    inputs = _inputs_of(kept, types)
    return "\n\n".join(graphql.print_ast(node) for node in [*kept, *inputs]) + "\n"


def _fields_cut(node, wanted):
    found = {field.name.value: field for field in node.fields if field.name.value in wanted}
    if set(found) != wanted:
        raise SystemExit(f"{node.name.value} has no {sorted(wanted - set(found))}")
    known = tuple(i for i in node.interfaces or () if i.name.value in GRAPHQL)
    fields = tuple(found[name] for name in sorted(found))
    return _bare(dataclasses.replace(node, fields=fields, interfaces=known))


def _inputs_of(kept, types):
    """Return every input, enum and scalar that is named anywhere in what is kept."""
    found, waiting = {}, [name for node in kept for name in _named_types(node)]
    while waiting:
        name = waiting.pop()
        if name not in found and name not in GRAPHQL and name in types:
            found[name] = _bare(types[name])
            waiting += _named_types(found[name])
    return [found[name] for name in sorted(found)]


def _named_types(node):
    if isinstance(node, graphql.NamedTypeNode):
        return [node.name.value]
    return [name for inner in _inner_nodes(node) for name in _named_types(inner)]


def _inner_nodes(node):
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, graphql.Node):
                yield inner


def _bare(part):
    """Remove descriptions and directives, which say nothing about what may be asked."""
    if isinstance(part, tuple):
        return tuple(_bare(inner) for inner in part)
    if not isinstance(part, graphql.Node):
        return part
    changes = {f.name: _bare(getattr(part, f.name)) for f in dataclasses.fields(part)}
    for prose, nothing in (("description", None), ("directives", ())):
        if prose in changes:
            changes[prose] = nothing
    return dataclasses.replace(part, **changes)


if __name__ == "__main__":
    main()
