"""Archives that somebody made who wants to harm us: none is unpacked, none is believed."""

import contextlib
import io
import stat
import struct
import warnings
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.errors import InvalidFileError
from ci_perf.github import artifacts

NAME = "run.json"


def zipped(*members, compression=zipfile.ZIP_DEFLATED):
    """Pack (name or ZipInfo, content) in this order."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as target, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name that is there twice
        for name, content in members:
            target.writestr(name, content)
    return packed.getvalue()


def a_link(name=NAME):
    found = zipfile.ZipInfo(name)
    found.create_system = 3
    found.external_attr = (stat.S_IFLNK | 0o777) << 16
    return found


def refused(data, match, **limits):
    with pytest.raises(InvalidFileError, match=match) as caught:
        artifacts.unpack_file(data, NAME, where="artifact 'x'", **limits)
    assert str(caught.value).startswith("artifact 'x': ")


def test_a_file_is_read_beside_others():
    data = zipped(("report.md", "#"), (NAME, "{}"), ("new/run.json", "no"))

    assert artifacts.unpack_file(data, NAME, where="w") == b"{}"


def test_a_file_that_is_stored_plainly_is_read():
    assert artifacts.unpack_file(zipped((NAME, "{}"), compression=0), NAME, where="w") == b"{}"


@pytest.mark.parametrize(
    "name",
    ["../run.json", "/run.json", "./run.json", "a/run.json", "RUN.JSON", "run.json/", "C:/x"],
)
def test_a_name_that_leads_elsewhere_is_not_the_one_that_is_looked_for(name, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    refused(zipped((name, "{}")), "expected run.json at its top, found none")

    assert list(tmp_path.rglob("run.json")) == []


def test_a_link_is_refused():
    refused(zipped((a_link(), "/etc/passwd")), "found a link")


def test_a_name_that_is_there_twice_is_refused():
    refused(zipped((NAME, "{}"), (NAME, '{"a": 1}')), "found it 2 times")


def test_a_bomb_is_refused_by_what_it_says_it_holds():
    data = zipped((NAME, bytes(10_001)))

    assert len(data) < 200
    refused(data, "run.json: expected at most 0 MiB, found more", max_file_bytes=10_000)


def test_a_bomb_that_lies_about_its_size_is_damaged():
    data = bytearray(zipped((NAME, bytes(10_001))))
    in_list = data.rindex(b"PK\x01\x02")
    struct.pack_into("<L", data, in_list + 24, 100)  # the size, as the list has it

    refused(bytes(data), "damaged", max_file_bytes=10_000)


def test_the_true_limit_is_the_one_that_is_promised():
    assert artifacts.MAX_BYTES == artifacts.MAX_FILE_BYTES == 50 * 2**20


def test_a_list_of_very_many_files_is_refused_before_it_is_read(monkeypatch):
    data = zipped(*((f"file{index:05}", "") for index in range(20_000)), (NAME, "{}"))
    monkeypatch.setattr(zipfile, "ZipFile", None)  # whoever reads the list fails in another way

    refused(data, "found too many")


def test_the_large_form_of_a_list_is_refused():
    data = zipped((NAME, "{}"))
    end = data.rindex(b"PK\x05\x06")
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)

    refused(data[:end] + locator + data[end:], "found too many")


def test_an_archive_that_is_larger_than_any_is_refused():
    archive = zipped((NAME, bytes(2**21)), compression=0)

    refused(archive, "expected at most 1 MiB, found more", max_bytes=2**20)


def test_a_file_with_a_password_is_refused():
    data = bytearray(zipped((NAME, "{}")))
    in_list = data.rindex(b"PK\x01\x02")
    data[in_list + 8] |= 1

    refused(bytes(data), "found another form of ZIP")


def test_an_unusual_packing_is_refused():
    refused(zipped((NAME, "{}"), compression=zipfile.ZIP_LZMA), "found another form of ZIP")


def test_content_that_was_changed_is_damaged():
    data = bytearray(zipped((NAME, "x" * 50), compression=0))
    data[data.index(b"xxx")] ^= 1

    refused(bytes(data), "damaged")


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip", b"<html>", bytes(10_000)])
def test_what_is_no_archive_is_refused(data):
    refused(data, "no end of an archive")


@given(st.data())
def test_an_archive_that_is_cut_off_or_damaged_is_refused_or_right(data):
    """Any single byte may be another, and any end be missing: never anything but our error."""
    content = b'{"a": 1}' * 20
    whole = bytearray(zipped(("first", "1"), (NAME, content), ("last", "2")))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255))
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    for one in (bytes(whole), bytes(cut)):
        with contextlib.suppress(InvalidFileError):
            assert artifacts.unpack_file(one, NAME, where="w") == content


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_and_nothing_else_happens(data):
    with pytest.raises(InvalidFileError):
        artifacts.unpack_file(data + b"PK\x05\x06" + data, NAME, where="w")
