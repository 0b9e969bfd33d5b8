import pytest

from ci_perf.errors import UsageError
from ci_perf.github.client import API_URL, Access

TOKEN = {"GH_TOKEN": "ghp_secret"}


@pytest.mark.parametrize(
    "remote",
    [
        "https://github.com/octo/model",
        "https://github.com/octo/model.git",
        "https://octocat:password@github.com/octo/model.git/",
        "git@github.com:octo/model.git",
        "ssh://git@github.com/octo/model.git",
        "ssh://git@github.com:22/octo/model",
        "https://GitHub.com/octo/model\n",
    ],
)
def test_a_clone_from_github_says_which_repository_it_is(remote):
    found = Access.from_clone(TOKEN, remote)

    assert (found.repository, found.api_url) == ("octo/model", API_URL)


@pytest.mark.parametrize(
    "remote",
    [
        "",
        "/srv/git/model.git",
        "https://evil.example/octo/model",
        "https://github.com.evil.example/octo/model",
        "https://github.com@evil.example/octo/model",
        "git@evil.example:octo/model",
        "https://github.com/octo",
        "https://github.com/octo/model/../../other/x",
    ],
)
def test_a_token_is_sent_to_no_host_that_only_a_clone_names(remote):
    with pytest.raises(UsageError, match="GITHUB_REPOSITORY=OWNER/NAME") as caught:
        Access.from_clone(TOKEN, remote)

    assert "ghp_secret" not in str(caught.value)


def test_a_server_of_ones_own_is_named_by_its_api():
    environment = {**TOKEN, "GITHUB_API_URL": "https://ghe.example/api/v3"}
    found = Access.from_clone(environment, "git@ghe.example:octo/model.git")

    assert (found.repository, found.api_url) == ("octo/model", "https://ghe.example/api/v3")


def test_the_environment_knows_better_than_a_clone():
    environment = {"GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "octo/model"}

    assert Access.from_clone(environment, "git@github.com:other/one").repository == "octo/model"


def test_the_token_of_a_person_comes_first_and_is_never_shown():
    found = Access.from_clone({**TOKEN, "GITHUB_TOKEN": "other"}, "git@github.com:octo/model")

    assert found.token == "ghp_secret"
    assert "ghp_secret" not in repr(found)


def test_without_a_token_it_says_where_to_get_one():
    with pytest.raises(UsageError, match="gh auth token"):
        Access.from_clone({"GH_TOKEN": ""}, "git@github.com:octo/model")


@pytest.mark.parametrize("name", ["", "octo", "octo/model/../x", "octo/model?x", "a b/c"])
def test_a_job_without_a_repository_is_refused(name):
    with pytest.raises(UsageError, match="GITHUB_REPOSITORY"):
        Access.from_job({"GITHUB_REPOSITORY": name})


@pytest.mark.parametrize("url", ["https://github.example/api/v3", ""])
def test_a_job_speaks_to_the_server_that_runs_it(url):
    access = Access.from_job({"GITHUB_REPOSITORY": "octo/model", "GITHUB_API_URL": url})

    assert access.api_url == (url or "https://api.github.com")
