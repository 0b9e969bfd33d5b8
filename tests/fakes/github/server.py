"""Two hosts on loopback: one that answers as GitHub does, one that holds the archives.

The first understands a request, checks it against the description, asks who is there, has the
operation done, and checks the answer.
"""

import json
import re
import threading
import traceback
from dataclasses import dataclass, field, replace

from werkzeug.wrappers import Request, Response

from tests.fakes.github import graph, schema
from tests.fakes.github.access import Access
from tests.fakes.github.call import RATE_LIMIT, Answer, Call, RefusedError, error
from tests.fakes.github.delivery import Delivery, finish
from tests.fakes.github.forms import Forms
from tests.fakes.github.operations import OPERATIONS
from tests.fakes.github.state import State

JSON = "application/json; charset=utf-8"
# Described, but without effect here: who relies on one of them must build it first.
UNKNOWN = {
    *{"actor", "app_id", "base", "branch", "check_suite_id", "created", "direction"},
    *{"exclude_pull_requests", "since", "sort", "status"},
}
GHES_VERSION = {"x-github-enterprise-version": "3.19.0"}


@dataclass(frozen=True)
class Asked:
    """A request as it came in; `status` is what was answered, 0 if nothing was."""

    method: str
    path: str
    query: dict[str, str]
    body: object
    token: str | None
    status: int = 0


@dataclass(frozen=True)
class AskedForBlob:
    path: str
    headers: dict[str, str]


@dataclass
class Blobs:
    """The other host: whoever has the address may read, and whoever shows a token may not."""

    state: State
    delivery: Delivery
    requests: list[AskedForBlob] = field(default_factory=list)

    def application(self, environment, start):
        request = Request(environment)
        self.requests.append(AskedForBlob(request.full_path.rstrip("?"), dict(request.headers)))
        response = self.delivery.bring(request, request.path, lambda: self._answer(request))
        return finish(response, environment, start)

    def _answer(self, request):
        if "Authorization" in request.headers:
            refusal = "<Error><Code>InvalidAuthenticationInfo</Code></Error>"
            return Response(refusal, 400, content_type="application/xml")
        number = re.fullmatch(r"/artifacts/(\d+)", request.path)
        if number is None or int(number[1]) not in self.state.artifacts:
            return Response("<Error><Code>BlobNotFound</Code></Error>", 404)
        archive = self.state.artifacts[int(number[1])].archive
        return Response(archive, content_type="application/zip")


class Api:
    """The host that answers as GitHub does."""

    def __init__(self, flavour, state, access, delivery):
        self.description = schema.load(flavour)
        self.state: State = state
        self.access: Access = access
        self.forms = Forms(state, digests=flavour == "github.com")
        self.delivery: Delivery = delivery
        self.prefix = "" if flavour == "github.com" else "/api/v3"
        self.graphql_path = "/graphql" if flavour == "github.com" else "/api/graphql"
        self.headers = RATE_LIMIT if flavour == "github.com" else GHES_VERSION
        self.requests: list[Asked] = []
        self.violations: list[str] = []
        self._lock = threading.Lock()

    # --- a request, from its arrival to its end

    def application(self, environment, start):
        request = Request(environment)
        path = self._path(request)
        asked = self._understood(request, path)
        response = self.delivery.bring(
            request, path, lambda: self._response(self._answered(request, asked))
        )
        status = 0 if response is None else response.status_code
        self.requests.append(replace(asked, status=status))
        return finish(response, environment, start)

    def _path(self, request):
        """Return the path without its base, the same for every flavour."""
        if request.path == self.graphql_path:
            return "/graphql"
        inside = request.path.startswith(f"{self.prefix}/")
        return request.path.removeprefix(self.prefix) if inside else f"(outside){request.path}"

    def _understood(self, request, path):
        body = request.get_json(force=True, silent=True) if request.get_data() else None
        token = request.headers.get("Authorization", "").partition(" ")[2] or None
        return Asked(request.method, path, request.args.to_dict(), body, token)

    def _answered(self, request, asked):
        """One request after the other, whatever happens in it."""
        with self._lock:
            try:
                return self._work(request, asked)
            except RefusedError as refusal:
                return refusal.answer
            except Exception:  # noqa: BLE001 - a mistake of the fake must fail the test, loudly
                self.violations.append(f"the fake itself: {traceback.format_exc()}")
                return Answer(500, error(500, "the fake has failed"))

    def _work(self, request, asked):
        if not request.headers.get("User-Agent"):
            raise RefusedError(403, "Request forbidden by administrative rules.")
        if request.get_data() and asked.body is None:
            self.violations.append(f"{asked.method} {asked.path}: the body is not JSON")
            raise RefusedError(400, "Problems parsing JSON")
        if asked.path == "/graphql":
            return self._graphql(asked)
        return self._rest(asked)

    # --- REST

    def _rest(self, asked):
        matched = self.description.match(asked.method, asked.path)
        if matched is None:
            self.violations.append(f"{asked.method} {asked.path}: no operation that is known")
            raise RefusedError(404, "Not Found")
        operation, parts = matched
        given = (operation, parts, asked.query, asked.body)
        wrong = self.description.problems_of_request(*given)
        wrong += [f"query {name}: the fake does not know it" for name in UNKNOWN & {*asked.query}]
        self._note(operation.id, wrong)
        try:
            answer = self._done(operation, parts, asked, wrong)
        except RefusedError as refusal:
            answer = refusal.answer
        problems = self.description.problems_of_response(operation, answer.status, answer.body)
        self._note(operation.id, problems)
        return answer

    def _done(self, operation, parts, asked, wrong):
        login = self.access.login(asked.token)
        repository = self._repository(parts)
        self.access.check(login, operation.id, repository, asked.method)
        if wrong:
            raise RefusedError(422, "Invalid request.\n\n" + "\n".join(wrong))
        call = Call(
            state=self.state,
            forms=self.forms,
            login=login,
            repository=repository,
            parts=parts,
            query=asked.query,
            body=asked.body or {},
            blobs=self.delivery.elsewhere,
        )
        return OPERATIONS[operation.id](call)

    def _repository(self, parts):
        if "repo" not in parts:
            return None
        name = f"{parts['owner']}/{parts['repo']}"
        if name not in self.state.repositories:
            raise RefusedError(404, "Not Found")
        return self.state.repositories[name]

    # --- GraphQL

    def _graphql(self, asked):
        login = self.access.login(asked.token)
        if login is None:
            raise RefusedError(401, "This endpoint requires you to be authenticated.")
        if asked.method != "POST" or not isinstance(asked.body, dict):
            self.violations.append(f"graphql: {asked.method} without a document")
            raise RefusedError(400, "A query attribute must be specified and must be a string.")
        root = graph.Root(self.state, self.forms, self.access, login)
        variables = asked.body.get("variables") or {}
        body, problems = graph.answer(asked.body.get("query", ""), variables, root)
        self.violations += problems
        return Answer(200, body)

    def _note(self, operation, problems):
        self.violations += [f"{operation}: {problem}" for problem in problems]

    def _response(self, answer):
        body = b"" if answer.body is None else json.dumps(answer.body).encode()
        headers = {**self.headers, **answer.headers}
        return Response(body, answer.status, headers, content_type=JSON)
