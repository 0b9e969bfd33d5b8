"""Variables and words that lead into a checkout, by any spelling."""

import pytest

from ci_perf.launch import side_paths
from tests import repositories


@pytest.fixture
def head(tmp_path):
    """Return a checkout at `repo` with untracked files, and its commit at `base`."""
    git = repositories.init(tmp_path / "repo")
    for folder in ("src", "inner/deep"):
        (git.root / folder).mkdir(parents=True)
        (git.root / folder / "a.py").touch()
    git.commit(conf_py="")
    git.ask("worktree", "add", "--quiet", "--detach", tmp_path / "base")
    for folder in ("data", ".venv/bin", "../repo2/src"):
        (git.root / folder).mkdir(parents=True)
    (tmp_path / "link").symlink_to(git.root)
    (tmp_path / "into").symlink_to(git.root / "src")
    return git.root


MOVED = {
    "GITHUB_WORKSPACE": ("{repo}", "{base}"),
    "WITH_SLASH": ("{repo}/", "{base}/"),
    "FILE": ("{repo}/src/a.py", "{base}/src/a.py"),
    "LINKED": ("{top}/link/src", "{base}/src"),
    "LINK_INTO_IT": ("{top}/into/a.py", "{base}/src/a.py"),
    "DOTS": ("{repo}/src/../inner/deep", "{base}/inner/deep"),
    "PATH": ("/usr/bin:{repo}/src:{repo}/.venv/bin:", "/usr/bin:{base}/src:{repo}/.venv/bin:"),
    "FLAGS": ("-I{repo}/src -DTOP={repo} -O2", "-I{base}/src -DTOP={base} -O2"),
    "URL": ("sqlite:///{repo}/conf.py?mode=ro", "sqlite:///{base}/conf.py?mode=ro"),
    "FILE_URL": ("file://{repo}/conf.py", "file://{base}/conf.py"),
    "LEAVES": ("../repo/src:../repo2", "{base}/src:../repo2"),
    "JSON": ('{{"a": "{repo}/src", "b": 1}}', '{{"a": "{base}/src", "b": 1}}'),
}
AS_THEY_ARE = {
    "DATA": "{repo}/data",
    "LEAVES_FOR_DATA": "../repo/data",
    "VIRTUAL_ENV": "{repo}/.venv",
    "PREFIX": "{repo}2/src",
    "SUFFIX": "/mnt{repo}/src",
    "RELATIVE": "src/a.py:./conf.py",
    "WITH_HOST": "http:/{repo}/src",
    "HOME": "{repo}",
    "EMPTY": "",
    "BYTES": "\udcff",
}


def spell(text, head):
    top = head.parent
    return text.format(repo=head, base=top / "base", top=top)


@pytest.mark.parametrize(
    ("name", "value", "expected"), [(name, *both) for name, both in MOVED.items()]
)
def test_a_variable_leads_into_the_checkout_of_the_side(head, name, value, expected):
    ours = {name: spell(value, head)}

    side = side_paths.build_side_environment(ours, head.parent / "base", head)

    assert side[name] == spell(expected, head)


@pytest.mark.parametrize(("name", "value"), AS_THEY_ARE.items())
def test_other_variables_stay_as_they_are(head, name, value):
    ours = {name: spell(value, head)}

    side = side_paths.build_side_environment(ours, head.parent / "base", head)

    assert side[name] == ours[name]


def test_each_side_has_its_own_folder_and_finds_its_own_repository(head):
    ours = {"PWD": "/x", "OLDPWD": str(head), "GIT_DIR": f"{head}/.git", "GIT_WORK_TREE": str(head)}

    sides = [
        side_paths.build_side_environment(ours, root, head) for root in (head, head.parent / "base")
    ]

    assert sides == [{"PWD": str(head)}, {"PWD": str(head.parent / "base")}]


def test_a_folder_inside_of_the_repository_has_variables_of_the_whole_repository(head):
    root = head.parent / "base/inner"
    ours = {"TOP": str(head), "DEEP": str(head / "inner/deep")}

    side = side_paths.build_side_environment(ours, root, head)

    base = head.parent / "base"
    assert side == {"TOP": str(base), "DEEP": str(base / "inner/deep"), "PWD": str(root)}


def test_a_checkout_with_a_space_in_its_path_is_found(head):
    other = head.parent / "my repo"
    head.rename(other)

    ours = {"W": f"{other}/src", "FLAGS": f"-I{other}/src --top={other} '{other}2'"}
    side = side_paths.build_side_environment(ours, head.parent / "base", other)

    base = head.parent / "base"
    assert side["W"] == f"{base}/src"
    assert side["FLAGS"] == f"-I{base}/src --top={base} '{other}2'"
    assert side_paths.find_path_inside(f"--config={other}/conf.py", other, other)
    assert not side_paths.find_path_inside(f"--config={other}2/conf.py", other, other)


def test_what_both_sides_share_is_named(head):
    ours = {name: spell(value, head) for name, value in AS_THEY_ARE.items()}
    ours |= {name: spell(value, head) for name, (value, _) in MOVED.items()}

    kept = side_paths.list_kept(ours, head.parent / "base", head)

    assert kept == ["DATA", "HOME", "LEAVES_FOR_DATA", "PATH", "VIRTUAL_ENV"]


def test_what_differs_between_the_sides_is_named(head):
    ours = {name: spell(value, head) for name, value in AS_THEY_ARE.items()}
    ours |= {name: spell(value, head) for name, (value, _) in MOVED.items()}

    different = side_paths.list_different(ours, head.parent / "base", head, head)

    assert different == sorted(MOVED)


def test_a_base_within_the_checkout_of_the_head_is_its_own(head):
    """As below `.git`, where no other folder lies on the file system of the checkout."""
    base = head / ".git/ci-perf/base"
    repositories.Repository(head).ask("worktree", "add", "--quiet", "--detach", base)

    ours = {"TOP": str(head), "DATA": str(head / "data")}

    assert side_paths.build_side_environment(ours, base, head)["TOP"] == str(base)
    assert side_paths.list_kept(ours, base, head) == ["DATA"]


@pytest.mark.parametrize(
    "word",
    [
        "{repo}/run.py",
        "{repo}",
        "/{repo}/run.py",
        "{top}/link/run.py",
        "{top}/into/run.py",
        "{repo}2/../repo/run.py",
        "../repo/run.py",
        "src/../../repo/run.py",
        "../link/run.py",
        "--config={top}/link/conf.py",
        "-I{repo}/src",
        "cd {top}/link && python run.py",
        "cat '../repo/conf.py'|sh",
        "~/repo/run.py",
        "python $HOME/repo/run.py",
    ],
)
def test_a_word_that_leads_both_sides_into_the_head_is_found(head, monkeypatch, word):
    monkeypatch.setenv("HOME", str(head.parent))

    assert side_paths.find_path_inside(spell(word, head), head, head)


@pytest.mark.parametrize(
    "word",
    [
        *("run.py", "./run.py", "src/../run.py", "../data/a.bin", "/usr/bin/python", "/", ".."),
        "~",
        *("{repo}2/run.py", "{top}/base", "$PWD/run.py", "a..b/c", "-", "", "\0{repo}", "src/.."),
    ],
)
def test_a_word_of_the_side_itself_is_fine(head, word):
    assert not side_paths.find_path_inside(spell(word, head), head, head)


def test_a_path_from_a_folder_to_its_neighbour_in_the_repository_is_fine(head):
    assert not side_paths.find_path_inside("../src/a.py", head / "inner", head)
    assert side_paths.find_path_inside("../../repo/src", head / "inner", head)


def test_no_git_is_needed(tmp_path):
    side = side_paths.build_side_environment({"A": "/x"}, tmp_path)

    assert side == {"A": "/x", "PWD": str(tmp_path)}


def test_a_link_of_the_base_into_the_head_is_found(head):
    base = head.parent / "base"
    (base / "current").symlink_to(head)

    assert side_paths.find_path_inside("python current/run.py", base, head)
    assert not side_paths.find_path_inside("python src/run.py", base, head)
