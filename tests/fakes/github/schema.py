"""GitHub's own description of its interface: which operation a request is, and what does not fit.

Knows no server and no state. A problem is a sentence; an empty list means that all is well.
An answer or an event may lack keys that the description requires: the fake writes those that
somebody reads.
"""

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.validators import extend
from openapi_schema_validator import OAS30ReadValidator, OAS30WriteValidator
from referencing import Registry
from referencing.jsonschema import DRAFT202012
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule

HERE = Path(__file__).parent / "description"
FLAVOURS = ("github.com", "ghes-3.19")
# How the validator finds what a schema refers to.
NAME = "urn:github"
# Part of these operations' paths may hold slashes, though the description does not say so.
SLASHES = {"path", "ref", "branch", "commit_sha"}
ERROR = {"$ref": f"{NAME}#/components/schemas/basic-error"}
JSON = "application/json"
# The descriptions deny it, and GitHub does send it: the repository of a fork that is gone, and the
# author of a commit whom no account is known for.
UNTRUE = re.compile(r"/(author|head/repo|head_repository): None ")
FORMATS = jsonschema.FormatChecker()
# Without the keys by which they differ, several of "one of" may fit.
PARTIAL = extend(
    OAS30ReadValidator,
    validators={"required": lambda *_: (), "oneOf": OAS30ReadValidator.VALIDATORS["anyOf"]},
)


@dataclass(frozen=True)
class Operation:
    """One operation of the REST interface, as it is described."""

    id: str
    parameters: tuple[dict[str, Any], ...]
    body: dict[str, Any] | None
    responses: dict[str, Any]


@functools.cache
def load(flavour):
    """Return the description of a flavour of GitHub; it is read once."""
    return Description(json.loads((HERE / f"{flavour}.json").read_text(encoding="utf-8")))


class Description:
    def __init__(self, document):
        self._document = _absolute(document)
        resource = DRAFT202012.create_resource(self._document)
        self._registry = Registry().with_resource(NAME, resource)
        self._validators: dict[tuple[int, Any], tuple[Any, Any]] = {}
        self._operations = dict(self._described())
        self._map = Map([self._rule(method, path) for method, path in self._operations])
        self._by_endpoint = {f"{m} {p}": op for (m, p), op in self._operations.items()}

    def _described(self):
        for path, item in self._document["paths"].items():
            for method, operation in item.items():
                parameters = tuple(map(self._resolved, operation.get("parameters", ())))
                body = self._resolved(operation.get("requestBody"))
                responses = operation["responses"]
                yield (
                    (method.upper(), path),
                    Operation(operation["operationId"], parameters, body, responses),
                )

    def _rule(self, method, path):
        def converter(match):
            return f"<{'path' if match[1] in SLASHES else 'string'}:{match[1]}>"

        rule = re.sub(r"\{(\w+)\}", converter, path)
        return Rule(rule, methods=[method], endpoint=f"{method} {path}", merge_slashes=False)

    def match(self, method, path):
        """Return the operation and the parts of its path, or None for what the fake lacks."""
        try:
            endpoint, parts = self._map.bind("fake").match(path, method)
        except HTTPException:
            return None
        return self._by_endpoint[endpoint], dict(parts)

    # --- problems

    def problems_of_request(self, operation, parts, query, body):
        """Check the path, the query and the body of a request."""
        return [
            *self._problems_of_parameters(operation, "path", parts),
            *self._problems_of_parameters(operation, "query", query),
            *self._problems_of_body(operation, body),
        ]

    def _problems_of_parameters(self, operation, place, given):
        known = {p["name"]: p for p in operation.parameters if p["in"] == place}
        for name, value in given.items():
            if name not in known:
                yield f"{place}: unknown parameter {name!r}"
            else:
                schema = known[name].get("schema", {})
                yield from self._problems(schema, _typed(value, schema), f"{place} {name}")
        for name, parameter in known.items():
            if parameter.get("required") and name not in given:
                yield f"{place}: parameter {name!r} is missing"

    def _problems_of_body(self, operation, body):
        if operation.body is None:
            return [] if body is None else ["body: none is allowed"]
        if body is None:
            return ["body: missing"] if operation.body.get("required") else []
        schema = operation.body["content"][JSON]["schema"]
        return self._problems(schema, body, "body", OAS30WriteValidator)

    def problems_of_response(self, operation, status, body):
        """Check an answer; an error that is not described must at least look like one."""
        described = self._resolved(operation.responses.get(str(status)))
        if described is None:
            if status < 400:
                return [f"response: the status {status} is not described"]
            schema: Any = ERROR
        else:
            schema = described.get("content", {}).get(JSON, {}).get("schema")
        if schema is None:
            return [] if body is None else [f"response {status}: a body that is not described"]
        found = self._problems(schema, body, f"response {status}", strict=status < 400)
        return [problem for problem in found if not UNTRUE.search(problem)]

    def problems_of_event(self, webhook, payload):
        """Check the payload of an event, by the name of its webhook: `pull-request-opened`."""
        return self._problems(self._document["x-webhooks"][webhook], payload, webhook)

    def webhooks(self):
        """Name the webhooks that are described."""
        return frozenset(self._document["x-webhooks"])

    def _problems(self, schema, value, place, kind=PARTIAL, *, strict=True):
        key = (id(schema), kind)
        if key not in self._validators:
            # The schema is kept with its validator: an id is only that of one that lives.
            validator = kind(schema, registry=self._registry, format_checker=FORMATS)
            self._validators[key] = schema, validator
        errors = self._validators[key][1].iter_errors(value)
        found = [f"{_where(place, e.absolute_path)}: {_reason(e)}" for e in errors]
        strange = self._strange(schema, value, ()) if strict else ()
        return found + [f"{_where(place, path)}: not described" for path in strange]

    # --- what the description says nothing about

    def _strange(self, schema, value, path):
        """Yield where an object has a key that no part of its schema knows: a typing error."""
        parts = list(self._parts(schema))
        if isinstance(value, list):
            items = [p["items"] for p in parts if "items" in p]
            for index, inner in enumerate(value if len(items) == 1 else ()):
                yield from self._strange(items[0], inner, (*path, index))
        if not isinstance(value, dict):
            return
        known = {}
        for part in parts:
            for key, inner in part.get("properties", {}).items():
                known.setdefault(key, []).append(inner)
        free = not known or any(isinstance(p.get("additionalProperties"), dict) for p in parts)
        for key, inner in value.items():
            if key in known:
                yield from self._strange({"anyOf": known[key]}, inner, (*path, key))
            elif not free:
                yield (*path, key)

    def _parts(self, schema):
        """Yield a schema and every schema that it is put together from."""
        schema = self._resolved(schema)
        yield schema
        for word in ("allOf", "anyOf", "oneOf"):
            for part in schema.get(word, ()):
                yield from self._parts(part)

    def _resolved(self, part):
        while isinstance(part, dict) and isinstance(part.get("$ref"), str):
            found = self._document
            for key in part["$ref"].removeprefix(f"{NAME}#/").split("/"):
                found = found[key]
            part = found
        return part


def _absolute(part):
    """Make every reference one that is found from anywhere."""
    if isinstance(part, dict):
        return {
            key: f"{NAME}{value}" if key == "$ref" and isinstance(value, str) else _absolute(value)
            for key, value in part.items()
        }
    return [_absolute(value) for value in part] if isinstance(part, list) else part


def _typed(text, schema):
    """A path and a query hold text only; a number that is none stays text, and is refused."""
    kinds = {schema.get("type"), *(part.get("type") for part in schema.get("oneOf", ()))}
    if "integer" in kinds and re.fullmatch(r"-?\d+", text):
        return int(text)
    if "boolean" in kinds and text in {"true", "false"}:
        return text == "true"
    return text


def _reason(error):
    """The schema that is said first is the one that is meant, where any of several would do."""
    inner = "; ".join(_reason(one) for one in error.context[:3])
    return error.message[:300] + (f" ({inner})" if inner else "")


def _where(place, path):
    return "/".join([place, *map(str, path)])
