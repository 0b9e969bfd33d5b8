"""What the first lines say of two environments that are not the same."""

import msgspec
import pytest

from ci_perf.model.comparison import Difference, Verdict
from ci_perf.report import html, markdown, notices, remarks, terminal
from tests.comparisons import a_change, a_comparison, an_interleaved

OLD, NEW = "pytorch@sha256:417bd75df636", "pytorch@sha256:6acf597eeb8e"
MAY_BE_ITS_DOING = ". This may explain a change below."


def comparing(**facts):
    found = [
        Difference(field=name, base=base, head=head) for name, (base, head) in sorted(facts.items())
    ]
    return a_comparison(a_change(), differences=tuple(found))


def said(**facts):
    """Return the sentences about these facts, each (base, head)."""
    return ["".join(phrase) for phrase in notices.compare_environments(comparing(**facts))]


def test_the_same_environment_is_not_mentioned():
    assert said() == []


def test_a_changed_image_is_told_with_the_software_that_came_with_it_and_not_with_the_hosts_own():
    image, rest = said(
        image=(OLD, NEW),
        cuda=("12.6", "13.0"),
        cudnn=("90501", "91002"),
        python=("3.11.9", "3.12.3"),
        torch=("2.12.0", "2.13.0"),
        transformers=("4.57.0", "none"),
        driver=("570.86", "580.65"),
        kernel=("6.8", "6.14"),
        threads=("8", "16"),
    )

    assert image == (
        f"⚠️ Image changed: {OLD} → {NEW}: torch 2.12.0 → 2.13.0, cuda 12.6 → 13.0, "
        "cudnn 90501 → 91002, python 3.11.9 → 3.12.3, transformers 4.57.0 → none"
        f"{MAY_BE_ITS_DOING}"
    )
    assert rest == (
        "⚠️ The environment differs: driver 570.86 → 580.65, kernel 6.8 → 6.14, threads 8 → 16. "
        "This may explain a change below, or hide one."
    )


def test_an_image_that_brought_nothing_new_is_named_all_the_same():
    assert said(image=(OLD, NEW)) == [f"⚠️ Image changed: {OLD} → {NEW}{MAY_BE_ITS_DOING}"]


@pytest.mark.parametrize(
    ("facts", "opening"),
    [
        (("none", NEW), f"The head was measured in a container ({NEW}), the base was not"),
        ((OLD, "none"), f"The base was measured in a container ({OLD}), the head was not"),
    ],
)
def test_a_container_on_one_side_only_is_said_in_words(facts, opening):
    (found,) = said(image=facts, torch=("2.12.0", "2.13.0"))

    assert found == f"⚠️ {opening}: torch 2.12.0 → 2.13.0{MAY_BE_ITS_DOING}"


def test_baselines_of_several_images_are_all_named():
    images = tuple(Difference(field="image", base=base, head=NEW) for base in (OLD, "none"))
    (found,) = notices.compare_environments(a_comparison(a_change(), differences=images))

    assert "".join(found) == (f"⚠️ Image changed: {OLD} → {NEW}, none → {NEW}{MAY_BE_ITS_DOING}")


def test_every_form_of_the_report_says_it_before_its_table():
    found = comparing(image=(OLD, NEW), torch=("2.12.0", "2.13.0"))
    forms = (
        markdown.render(found),
        html.comparison(found),
        terminal.render(found, width=200, color=False),
    )

    for text in forms:
        assert "Image changed" in text
        assert text.index("Image changed") < text.index("step time")


def test_packages_that_the_change_may_have_brought_are_left_to_the_history():
    comparison = msgspec.structs.replace(
        comparing(packages=("0" * 16, "1" * 16), kernel=("6.8", "6.14")),
        interleaved=an_interleaved(dependencies=("requirements.txt", "uv.lock")),
    )

    packages, environment = ["".join(phrase) for phrase in notices.list_notices(comparison)]

    assert packages.startswith("⚠️ This change alters requirements.txt, uv.lock, and the installed")
    assert "pairs show what the code does, and only the history shows what the packages" in packages
    assert environment.startswith("⚠️ The environment differs: kernel 6.8 → 6.14.")


def test_packages_that_the_change_asks_for_and_nobody_has_installed_are_told():
    named = ("pyproject.toml", "requirements.txt", ".github/workflows/perf.yml")

    (packages,) = said_of(comparing(), *named)

    assert packages.startswith("ℹ️ This change alters pyproject.toml, requirements.txt, and the")  # noqa: RUF001
    assert packages.endswith("What it asks for was measured only if it was installed before.")
    assert said_of(comparing(), ".github/workflows/perf.yml") == []


def said_of(comparison, *dependencies):
    interleaved = an_interleaved(dependencies=dependencies)
    comparison = msgspec.structs.replace(comparison, interleaved=interleaved)
    return ["".join(phrase) for phrase in notices.list_notices(comparison)]


def test_packages_are_no_doing_of_a_change_that_alters_no_file_of_them():
    (environment,) = said(packages=("0" * 16, "1" * 16))

    assert environment.startswith("⚠️ The environment differs: other installed packages.")


def test_a_row_that_other_packages_may_have_moved_says_how_far_its_history_is():
    gain = a_change(code="other_packages", ratio=1.0, drift=0.9)
    loss = a_change(verdict=Verdict.INCONCLUSIVE, code="other_packages", ratio=1.3, drift=1.3)

    assert (
        "its history had other packages (\N{MINUS SIGN}10.0 %); the base was"
        in remarks.describe(gain)
    )
    assert "its history had other packages; the base was" in remarks.describe(loss)
