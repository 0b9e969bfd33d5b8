"""What a report says of a run that was measured in containers."""

import msgspec

from ci_perf.model.comparison import Difference, Verdict
from ci_perf.report import commands, markdown
from tests.comparisons import a_change, a_comparison, a_head
from tests.runs import an_image
from tests.unit.report import shapes

ROW = a_change(verdict=Verdict.INCONCLUSIVE)


def measured_in(image):
    return a_comparison(ROW, head=a_head(image=image))


def test_the_image_is_named_as_it_was_asked_for_with_registry_and_tag():
    named = "`ghcr.io/us/perf:2.13@sha256:fedcba987654`"

    assert f"| Image | `none` | {named} |" in markdown.render(measured_in(an_image()))


def test_commands_to_copy_measure_in_containers_again():
    comparison = measured_in(an_image(engine="podman"))

    assert "--runner podman" in str(commands.check_by_pairs([ROW], comparison))
    assert "--runner podman" in str(commands.measure(comparison))


def test_without_a_container_neither_is_said():
    comparison = measured_in(None)

    assert "| Image |" not in markdown.render(comparison)
    assert "--runner" not in str(commands.measure(comparison))


def test_canaries_that_moved_with_the_image_do_not_blame_the_machine_alone():
    moved = shapes.canary_moved()
    other = Difference(field="image", base="a@sha256:0", head="b@sha256:1")

    assert "⚠️ The speed of the machine changed: fixed programs" in markdown.render(moved)
    assert (
        "⚠️ The speed of the machine changed, or the image makes the difference"
        in markdown.render(msgspec.structs.replace(moved, differences=(other,)))
    )
