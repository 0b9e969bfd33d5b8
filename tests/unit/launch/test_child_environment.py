import os

import pytest

from ci_perf.launch import child_environment
from ci_perf.model.suite import PlannedWorkload, Protocol


def planned(**protocol):
    return PlannedWorkload(
        id="it", file="it.py", description="", parameters={}, protocol=Protocol(**protocol)
    )


def test_the_allocator_is_fixed_under_both_of_its_names(tmp_path):
    ours = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}

    environment = child_environment.build_task_environment(
        ours, planned(allocator="max_split_size_mb:64"), tmp_path
    )

    assert environment["PYTORCH_CUDA_ALLOC_CONF"] == "max_split_size_mb:64"
    assert environment["PYTORCH_ALLOC_CONF"] == "max_split_size_mb:64"


def test_what_the_user_set_reaches_the_child_and_tokens_do_not(tmp_path):
    ours = {"CUDA_VISIBLE_DEVICES": "1", "GITHUB_TOKEN": "t", "OMP_NUM_THREADS": "64"}

    environment = child_environment.build_task_environment(ours, planned(threads=2), tmp_path)

    assert environment["CUDA_VISIBLE_DEVICES"] == "1"
    assert environment["OMP_NUM_THREADS"] == "2"
    assert "GITHUB_TOKEN" not in environment


@pytest.mark.parametrize("name", ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"])
def test_tokens_for_a_github_enterprise_server_do_not_reach_the_child(name):
    assert name not in child_environment.build_environment_as_it_is({name: "t"}, 1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "pip --index-url https://me:pa@ss@it.example/a",
            "pip --index-url https://***@it.example/a",
        ),
        ("git+https://ghp_1@it.example/a@v1 'b'", "git+https://***@it.example/a@v1 'b'"),
        (
            "pip https://it.example/a@v1 git@it.example:a",
            "pip https://it.example/a@v1 git@it.example:a",
        ),
        ("curl -H 'Bearer s3cret'", "curl -H 'Bearer ***'"),
        ('curl -H "Authorization: token a1" b', 'curl -H "Authorization: token ***" b'),
        ("TOKEN=abc pip install x", "TOKEN=*** pip install x"),
        ("MY_KEY='a b'; sh x", "MY_KEY=***; sh x"),
        ("hf login --hf-token abc --x", "hf login --hf-token *** --x"),
        ("curl it.example?token=a&b=1", "curl it.example?token=***&b=1"),
        (f"a github_pat_{'a1' * 11}_{'b' * 59}:b", "a ***:b"),
        (f"hf_{'a1' * 17}, hf_hub_download", "***, hf_hub_download"),
        ("sort key=len, wandb-key false", "sort key=len, *** false"),
    ],
)
def test_a_text_for_people_has_no_credentials(text, shown):
    ours = {"GITHUB_TOKEN": "s3cret", "GH_TOKEN": "", "GITHUB_OUTPUT": "curl"}
    ours |= {"WANDB_API_KEY": "wandb-key", "USE_TOKEN": "false"}

    assert child_environment.hide_credentials(text, ours) == shown


def test_what_must_not_import_the_repository_finds_no_way_into_it(tmp_path):
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    (root / "src").mkdir(parents=True)
    elsewhere.mkdir()
    (tmp_path / "link").symlink_to(root)
    entries = [str(root), str(root / "src"), str(tmp_path / "link"), ".", "", str(elsewhere)]

    found = child_environment.apart_from(root, {"PYTHONPATH": os.pathsep.join(entries)}, threads=1)

    kept = found["PYTHONPATH"].split(os.pathsep)
    assert kept == [str(elsewhere), str(child_environment._PACKAGES)]


def test_our_own_dependencies_stay_where_they_lie_in_the_checkout():
    """As `make wheels` puts them there, for a machine on which nothing can be installed."""
    wheels = child_environment._DEPENDENCIES
    entries = os.pathsep.join([str(wheels), str(wheels.parent), "lib"])

    environment = child_environment.apart_from(wheels.parent, {"PYTHONPATH": entries}, threads=1)

    kept = environment["PYTHONPATH"].split(os.pathsep)
    assert kept == [str(wheels), str(child_environment._PACKAGES)]
