"""Pull requests, workflow runs and the artifacts of a run."""

from tests.fakes.github.call import Answer, RefusedError
from tests.fakes.github.state import Run


def get_pull(call):
    return Answer(200, call.forms.pull(_pull(call)))


def pulls(call):
    found = [p for p in call.state.pulls.values() if _is_wanted(call, p)][::-1]
    return Answer(200, [call.forms.pull(pull) for pull in call.page(found)])


def pulls_of_commit(call):
    """A commit that a pull request has brought, or of which it is the head."""
    sha = call.parts["commit_sha"]
    found = [pull for pull in call.state.pulls.values() if sha in {pull.head_sha, pull.merged_as}]
    return Answer(200, [call.forms.pull(pull) for pull in call.page(found)])


def pull_files(call):
    changes = call.page(list(call.state.changed_files(_pull(call))))
    return Answer(200, [call.forms.file_of_pull(*change) for change in changes])


def get_run(call):
    return Answer(200, call.forms.run(_run(call)))


def runs(call):
    """The newest first."""
    wanted = ("head_sha", "event")
    found = [
        run
        for run in list(call.state.runs.values())[::-1]
        if all(call.query.get(name, getattr(run, name)) == getattr(run, name) for name in wanted)
    ]
    written = [call.forms.run(run) for run in call.page(found)]
    return Answer(200, {"total_count": len(found), "workflow_runs": written})


def dispatch(call):
    """GitHub takes at most 25 inputs, and says which run it is only where somebody asks."""
    name = call.parts["workflow_id"]
    if name not in call.state.workflows:
        raise RefusedError(404, "Not Found")
    branch = call.body["ref"]
    if branch not in call.repository.branches:
        raise RefusedError(422, f"No ref found for: {branch}")
    run = Run(
        id=call.state.next_id(),
        event="workflow_dispatch",
        path=f".github/workflows/{name}",
        status="queued",
        conclusion=None,
        attempt=1,
        head_sha=call.repository.branches[branch],
        head_branch=branch,
        head_repository=call.repository.full_name,
        inputs=call.body.get("inputs", {}),
    )
    call.state.runs[run.id] = run
    if not (call.forms.digests and call.body.get("return_run_details")):  # not on GHES
        return Answer(204)
    written = call.forms.run(run)
    keys = {"workflow_run_id": run.id, "run_url": written["html_url"]}
    return Answer(200, keys | {"html_url": written["html_url"]})


def repeat(call):
    run = _run(call)
    if run.status != "completed":
        raise RefusedError(403, "This workflow run is already running.")
    run.attempt, run.status, run.conclusion = run.attempt + 1, "queued", None
    return Answer(201, {})


def artifacts(call):
    """The newest first: a run that is repeated has several of one name."""
    run = _run(call)
    found = [
        a
        for a in list(call.state.artifacts.values())[::-1]
        if a.run_id == run.id and call.query.get("name", a.name) == a.name
    ]
    written = [call.forms.artifact(artifact) for artifact in call.page(found)]
    return Answer(200, {"total_count": len(found), "artifacts": written})


def download(call):
    """The archive lies on another host, at an address that is signed for a minute."""
    artifact = call.found(call.state.artifacts, call.number("artifact_id"))
    if artifact.expired:
        raise RefusedError(410, "Artifact has expired")
    return Answer(302, None, {"Location": f"{call.blobs}/artifacts/{artifact.id}?sig=c2lnbmVk"})


def _is_wanted(call, pull):
    """A head without its owner is no filter for GitHub: it returns everything."""
    head = call.query.get("head", "")
    repository = call.state.repositories.get(pull.head_repository)
    label = f"{repository.owner if repository else pull.author}:{pull.head_branch}"
    is_in_state = call.query.get("state", "open") in {pull.state, "all"}
    return is_in_state and (":" not in head or head == label)


def _pull(call):
    return call.found(call.state.pulls, call.number("pull_number"))


def _run(call):
    return call.found(call.state.runs, call.number("run_id"))
