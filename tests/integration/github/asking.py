"""How tests ask a GitHub: without PyGithub, which hides redirects and repeats requests."""

import requests

SHA, FORK_SHA = "a" * 40, "c" * 40


def ask(github, method, path, *, token=None, **options):
    """Ask about the repository; the client waits for as long as a busy machine may need."""
    headers = {"Authorization": f"Bearer {token or github.token}"}
    address = f"{github.url}/repos/{github.repository}{path}"
    options = {"timeout": 30, "allow_redirects": False, "headers": headers, **options}
    return requests.request(method, address, **options)


def graphql(github, document, **variables):
    """Return the body of the answer to a document."""
    headers = {"Authorization": f"Bearer {github.token}"}
    body = {"query": document, "variables": variables}
    return requests.post(github.graphql_url, json=body, headers=headers, timeout=30).json()
