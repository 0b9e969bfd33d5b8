"""Our runner of composite actions keeps GitHub's rules: where it is wrong, all else here is."""

import json
import textwrap

import pytest

from tests.actions import messages

TOKEN = "ghs_a-token-of-this-job"


@pytest.fixture
def run(job, tmp_path):
    """Run an action that consists of these steps."""

    def run_steps(steps, *, inputs="", outputs="", token=TOKEN, cancel_when=None, **given):
        folder = tmp_path / "action"
        folder.mkdir(exist_ok=True)
        (folder / "action.yml").write_text(
            "name: a\ndescription: b\n"
            + (f"inputs:\n{textwrap.indent(textwrap.dedent(inputs), '  ')}\n" if inputs else "")
            + (f"outputs:\n{textwrap.indent(textwrap.dedent(outputs), '  ')}\n" if outputs else "")
            + "runs:\n  using: composite\n  steps:\n"
            + textwrap.indent(textwrap.dedent(steps), "    ")
        )
        one = job(github={"event_name": "push", "repository": "octo/model"}, token=token)
        return one, one.run_action(folder, cancel_when=cancel_when, **given)

    return run_steps


def a_step(name, run, **more):
    lines = [f"- name: {name}", f"  id: {name}", "  shell: bash", f"  run: {json.dumps(run)}"]
    return "\n".join(lines + [f"  {key.replace('_', '-')}: {value}" for key, value in more.items()])


def test_after_a_failure_only_those_run_who_ask_for_it(run):
    steps = [
        a_step("bad", "exit 3"),
        a_step("later", "echo no"),
        a_step("quiet", "echo no", **{"if": "github.event_name == 'push'"}),
        a_step("always", "echo yes", **{"if": "always()"}),
        a_step("failed", "echo yes", **{"if": "failure()"}),
    ]

    _, done = run("\n".join(steps))

    assert [step.outcome for step in done.steps] == [
        "failure", "skipped", "skipped", "success", "success",
    ]  # fmt: skip
    assert (done.conclusion, done.step("bad").code) == ("failure", 3)


def test_a_step_that_is_forgiven_keeps_its_outcome(run):
    steps = [a_step("bad", "exit 1", continue_on_error="true"), a_step("next", "echo yes")]

    _, done = run("\n".join(steps))

    assert (done.step("bad").outcome, done.step("bad").conclusion) == ("failure", "success")
    assert (done.step("next").outcome, done.conclusion) == ("success", "success")


def test_a_step_gets_what_is_mapped_and_neither_inputs_nor_the_token(run):
    _, done = run(a_step("only", "env", env="{MINE: '${{ inputs.word }}'}"), inputs="word: {}",
                  word="a b")  # fmt: skip

    environment = done.step("only").environment
    assert environment["MINE"] == "a b"
    assert not [name for name in environment if name.startswith("INPUT_")]
    assert TOKEN not in environment.values()
    assert environment["GITHUB_REPOSITORY"] == "octo/model"


def test_an_expression_in_a_script_is_executed_as_on_github(run):
    """Why ours has none."""
    _, done = run(a_step("only", 'echo "${{ inputs.word }}"'), inputs="word: {}",
                  word='"; echo $((6*7)) #')  # fmt: skip

    assert done.step("only").log == "\n42\n"


def test_a_default_may_be_the_token_and_no_other_input(run):
    inputs = """\
        token:
          default: ${{ github.token }}
        flag:
          default: true
    """
    job, done = run(a_step("only", "echo $MINE", env="{MINE: '${{ inputs.token }}'}"),
                    inputs=inputs, unheard_of="x")  # fmt: skip

    assert done.step("only").environment["MINE"] == TOKEN
    assert done.step("only").log == "***\n"
    assert job.annotations == [("warning", "Unexpected input(s) 'unheard-of'")]


@pytest.mark.parametrize("expression", ["secrets.TOKEN", "unheard_of()", "inputs.a ="])
def test_an_expression_that_github_refuses_ends_the_action(run, expression):
    steps = [a_step("bad", "echo no", **{"if": f'"{expression}"'}), a_step("next", "echo no")]

    job, done = run("\n".join(steps))

    assert done.steps == []
    assert done.conclusion == "failure"
    assert job.annotations[0][0] == "error"


def test_outputs_are_handed_on_also_after_a_failure(run):
    step = a_step("one", 'echo a=1 >> "$GITHUB_OUTPUT"; exit 1')

    _, done = run(step, outputs="a: {value: '${{ steps.one.outputs.a }}'}")

    assert done.outputs == {"a": "1"}


def test_what_is_written_for_later_steps_reaches_the_next_one(run):
    steps = [
        a_step("one", 'echo A=1 >> "$GITHUB_ENV"; echo /here >> "$GITHUB_PATH"; echo $A.'),
        a_step("two", "echo $A ${PATH%%:*}"),
    ]

    _, done = run("\n".join(steps))

    assert done.step("one").log == ".\n"
    assert done.step("two").log == "1 /here\n"


def test_a_cancelled_step_is_signalled_alone_and_only_those_follow_who_always_run(run, tmp_path):
    started = tmp_path / "started"
    steps = [
        a_step("one", f'touch "{started}"; exec sleep 60'),
        a_step("two", "echo no"),
        a_step("three", "echo yes", **{"if": "always()"}),
        a_step("four", "echo yes", **{"if": "cancelled()"}),
        a_step("five", "echo no", **{"if": "failure()"}),
    ]

    job, done = run("\n".join(steps), cancel_when=started.exists)

    assert job.status == "cancelled"
    assert [signal.name for signal in done.step("one").signals] == ["SIGINT"]
    assert [step.outcome for step in done.steps[1:]] == [
        "skipped", "success", "success", "skipped",
    ]  # fmt: skip


def test_files_of_values_and_commands_are_read_as_github_reads_them():
    assert messages.values("a<<E\none\ntwo\nE\nb=x=y\n") == {"a": "one\ntwo", "b": "x=y"}
    with pytest.raises(messages.InvalidFileCommandError):
        messages.values("a<<E\nx\n")
    heard = messages.heard(
        "::error file=a.py::it%0Afailed\n::stop-commands::x1\n::error::no\n::x1::\n"
        "::add-mask::secret\n  ::notice::yes\n"
    )

    assert heard.annotations == [("error", "it\nfailed"), ("notice", "yes")]
    assert heard.masks == ["secret"]
