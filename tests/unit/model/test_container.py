"""What an image may be called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.model import container
from ci_perf.model.container import Local, Named

HEX = "0123456789abcdef" * 4
DIGEST = f"sha256:{HEX}"


@pytest.mark.parametrize(
    ("text", "repository", "tag"),
    [
        ("python", "docker.io/library/python", ""),
        ("docker.io/python:3.11", "docker.io/library/python", "3.11"),
        ("index.docker.io/library/python", "docker.io/library/python", ""),
        ("pytorch/pytorch:2.13.0-cuda12.6", "docker.io/pytorch/pytorch", "2.13.0-cuda12.6"),
        ("ghcr.io/us/team/perf:Nightly_1.x", "ghcr.io/us/team/perf", "Nightly_1.x"),
        ("localhost:5000/perf:1", "localhost:5000/perf", "1"),
        ("127.0.0.1:5000/a__b-c.d/e", "127.0.0.1:5000/a__b-c.d/e", ""),
        ("[::1]:5000/perf", "[::1]:5000/perf", ""),
    ],
)
@pytest.mark.parametrize("digest", ["", DIGEST])
def test_a_name_is_spelled_in_full(text, repository, tag, digest):
    found = container.parse_reference(f"{text}@{digest}" if digest else text)

    assert isinstance(found, Named)
    assert (found.repository, found.tag, found.digest) == (repository, tag, digest)
    assert text == (f"{found.name}:{tag}" if tag else found.name)


def test_an_id_of_this_host_is_no_name():
    assert container.parse_reference(DIGEST) == Local(identity=DIGEST)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "''"),
        ("--privileged", "'--privileged'"),
        ("perf:-v", "'-v'"),
        ("a b", "'a b'"),
        ("perf\n", r"'perf\n'"),
        ("Perf:1", "small letters, found 'Perf'"),
        ("perf:", "''"),
        (f"perf:{'x' * 129}", "at most 128"),
        ("perf@", "after the @, found ''"),
        (f"perf@{DIGEST}0", "64 digits"),
        (f"perf@{DIGEST}\n", "64 digits"),
        (f"perf@sha512:{HEX}", "found 'sha512"),
        (f"perf@{DIGEST}@{DIGEST}", "64 digits"),
        ("sha256:0123", "expected sha256: and 64 digits 0-9a-f, found 'sha256:0123'"),
        (HEX, "an id begins with sha256:"),
        ("us//perf", "'us//perf'"),
        ("../perf", "'../perf'"),
        ("us/a___b", "'us/a___b'"),
        ("https://ghcr.io/us/perf", "'https://ghcr.io/us/perf'"),
        ("-x.io/us/perf", "'-x.io/us/perf'"),
        ("ghcr.io:port/us/perf", "'ghcr.io:port/us/perf'"),
        ("a" * 401, "at most 400 characters, found 401"),
        ("perf٣", "'perf٣'"),
    ],
)
def test_what_is_no_reference_is_refused_with_what_was_found(text, found):
    with pytest.raises(ValueError, match="expected") as error:
        container.parse_reference(text)

    assert found in str(error.value)


@given(st.text(max_size=80))
def test_nothing_that_is_taken_for_a_reference_can_be_a_switch_or_two_arguments(text):
    try:
        container.parse_reference(text)
    except ValueError:
        return

    assert not text.startswith("-")
    assert text.isascii()
    assert text.isprintable()
    assert " " not in text


@pytest.mark.parametrize(
    ("text", "prefix", "is_under"),
    [
        ("ghcr.io/us/perf", "ghcr.io/us", True),
        ("ghcr.io/us/perf", "ghcr.io", True),
        ("ghcr.io/us/perf/gpu", "ghcr.io/us/perf", True),
        ("ghcr.io/us/perfect", "ghcr.io/us/perf", False),
        ("ghcr.io/usurper/perf", "ghcr.io/us", False),
        ("ghcr.io.evil.example/us/perf", "ghcr.io", False),
        ("evil.example/ghcr.io/us/perf", "ghcr.io/us", False),
        ("us/perf", "ghcr.io/us", False),
        ("localhost:5001/perf", "localhost:5000", False),
        ("pytorch/pytorch", "pytorch/pytorch", True),
        ("docker.io/pytorch/pytorch", "pytorch/pytorch", True),
        ("pytorch/pytorch", "docker.io/pytorch", True),
        ("pytorch/pytorch", "pytorch", False),  # which is Docker Hub's own image of that name
        ("python", "python", True),
        ("python", "docker.io/library", True),
        ("us/python", "python", False),
        (DIGEST, "ghcr.io", False),
    ],
)
def test_a_prefix_is_whole_words_of_the_full_name(text, prefix, is_under):
    named = text if text == DIGEST else f"{text}:1@{DIGEST}"

    assert container.is_under(container.parse_reference(named), prefix) is is_under


@pytest.mark.parametrize(
    "prefix",
    ["", "/", "-x", "GHCR.io/us", "ghcr.io//us", "ghcr.io/us:1", f"ghcr.io/us@{DIGEST}", "us/p:1"],
)
def test_a_prefix_that_could_never_match_is_refused(prefix):
    with pytest.raises(ValueError, match="expected"):
        container.is_under(container.parse_reference("ghcr.io/us/perf"), prefix)
