"""How tests ask a GitHub: by PyGithub, by requests, by GraphQL."""

import requests
from github import Auth, Github

SHA, FORK_SHA = "a" * 40, "c" * 40
MARKER = "<!-- ci-perf:v1 key=default -->"


def repository(github, token=None):
    """Return the repository as PyGithub has it; nothing has been asked yet."""
    client = Github(
        auth=Auth.Token(token or github.token),
        base_url=github.url,
        per_page=100,
        lazy=True,
        retry=None,
        seconds_between_requests=0,
        seconds_between_writes=0,
    )
    return client.get_repo(github.repository)


def ask(github, method, path, *, token=None, **options):
    """Ask without PyGithub, which hides redirects and adds requests of its own."""
    headers = {"Authorization": f"Bearer {token or github.token}"}
    return requests.request(
        method, github.url + path, headers=headers, allow_redirects=False, timeout=30, **options
    )


def graphql(github, document, **variables):
    """Return the body of the answer to a document."""
    headers = {"Authorization": f"Bearer {github.token}"}
    body = {"query": document, "variables": variables}
    return requests.post(github.graphql_url, json=body, headers=headers, timeout=30).json()
