"""The data set of the suite: read exactly, generated whole or not at all, never a silent error."""

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

import _cifar10

WORKLOADS = Path(__file__).parents[2] / "workloads"
PREPARE = "import sys, _cifar10; _cifar10.prepare(sys.argv[1])"
FILE_BYTES = 30_730_000  # as the real files have


@pytest.fixture(scope="module")
def generated():
    with tempfile.TemporaryDirectory() as folder:  # 180 MB: pytest would keep three of them
        yield _cifar10.prepare(folder)


@pytest.fixture
def by_hand(tmp_path):
    """One file whose record k has the label k % 10 and the planes k % 256, 2 and 3."""
    path = tmp_path / "data_batch_1.bin"
    with path.open("wb") as file:
        for k in range(10_000):
            file.write(bytes([k % 10]) + bytes([k % 256]) * 1024 + b"\2" * 1024 + b"\3" * 1024)
    yield path
    path.unlink()


def a_dataset(path, **more):
    return _cifar10.Cifar10(path.parent, files=(path.name,), **more)


def processes(code, folder, count):
    """Start `count` Python processes at once."""
    command = [sys.executable, "-c", code, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(WORKLOADS)}
    return [
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(count)
    ]


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).digest() for path in folder.iterdir()}


def test_a_record_is_a_label_and_three_planes_whose_rows_run_from_the_top_and_the_left(by_hand):
    plane = bytes(y * 4 + x // 8 for y in range(32) for x in range(32))
    with by_hand.open("r+b") as file:
        file.write(b"\7" + plane * 3)
    dataset = a_dataset(by_hand, transform=lambda pixels: pixels)

    pixels, label = dataset[0]
    assert label == 7
    assert pixels[2, 31, 0] == 31 * 4
    assert pixels[2, 0, 31] == 31 // 8
    for position in (4321, 9999):
        pixels, label = dataset[position]
        assert (label, pixels.dtype, pixels.shape) == (position % 10, torch.uint8, (3, 32, 32))
        assert [plane.unique().tolist() for plane in pixels] == [[position % 256], [2], [3]]


def test_the_index_runs_over_all_files(generated):
    dataset = _cifar10.Cifar10(generated)
    alone = _cifar10.Cifar10(generated, files=("data_batch_3.bin",))

    assert len(dataset) == 50_000
    assert torch.equal(dataset[20_005][0], alone[5][0])
    assert torch.equal(dataset[-1][0], dataset[49_999][0])
    for index in (50_000, -50_001):
        with pytest.raises(IndexError):
            dataset[index]


def test_images_are_normalized(generated):
    pixels, _ = _cifar10.Cifar10(generated)[0]

    raw = _cifar10.Cifar10(generated, transform=lambda pixels: pixels)[0][0]
    expected = (raw[1, 2, 3].item() / 255 - 0.4822) / 0.2435
    assert pixels.dtype == torch.float32
    assert pixels[1, 2, 3].item() == pytest.approx(expected, abs=1e-5)


def test_augmented_images_are_shifted_or_flipped_copies():
    torch.manual_seed(0)
    pixels = torch.randint(1, 256, (3, 32, 32), dtype=torch.uint8)
    views = [_cifar10.augment(pixels) for _ in range(20)]

    assert {tuple(view.shape) for view in views} == {(3, 32, 32)}
    assert len({view.sum().item() for view in views}) > 10
    black = _cifar10.normalize(torch.zeros(3, 32, 32, dtype=torch.uint8))
    whole = [view for view in views if not torch.isclose(view, black).any()]
    assert len(whole) < len(views), "padding of 4 must show in most of the crops"


def test_generated_files_have_the_layout_of_the_real_ones(generated):
    sizes = {path.name: path.stat().st_size for path in generated.iterdir()}

    assert generated.name == "cifar-10-batches-bin"
    assert sizes.pop("batches.meta.txt") > 0
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    assert sizes == dict.fromkeys(names, FILE_BYTES)
    assert (generated / "batches.meta.txt").read_text().split()[3] == "cat"


def test_generated_classes_can_be_told_apart(generated):
    dataset = _cifar10.Cifar10(generated)
    samples = [dataset[index] for index in range(400)]
    means = torch.stack(
        [
            torch.stack([image for image, label in samples[:300] if label == wanted]).mean(0)
            for wanted in range(10)
        ]
    )
    guesses = [(means - image).square().sum((1, 2, 3)).argmin() for image, _ in samples[300:]]

    assert guesses == [label for _, label in samples[300:]]


def test_data_that_is_there_is_used_as_it_is(tmp_path):
    folder = tmp_path / _cifar10.FOLDER
    folder.mkdir()
    (folder / "mine").touch()

    assert _cifar10.prepare(str(tmp_path)) == folder
    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_two_processes_that_generate_at_once_both_find_the_same_whole_data(generated):
    with tempfile.TemporaryDirectory() as folder:
        for process in processes(PREPARE, folder, 2):
            assert process.communicate(timeout=120)[1] == ""
            assert process.returncode == 0

        assert [path.name for path in Path(folder).iterdir()] == [_cifar10.FOLDER]
        assert digests(Path(folder) / _cifar10.FOLDER) == digests(generated)


def test_a_process_killed_while_generating_leaves_no_half_data():
    kill = (
        "import os, sys; sys.addaudithook(lambda event, found: event == 'open' and"
        " str(found[0]).endswith('data_batch_3.bin') and os.kill(os.getpid(), 9));"
    )
    with tempfile.TemporaryDirectory() as folder:
        (process,) = processes(kill + PREPARE, folder, 1)
        process.communicate(timeout=60)

        assert process.returncode == -signal.SIGKILL
        assert any(Path(folder).glob(".*/*/data_batch_2.bin"))
        assert not (Path(folder) / _cifar10.FOLDER).exists()


def test_a_full_disk_leaves_nothing_behind(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20));"
    (process,) = processes(limit + PREPARE, tmp_path, 1)
    error = process.communicate(timeout=60)[1]

    assert process.returncode == 1
    assert "File too large" in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [0, FILE_BYTES - 1, FILE_BYTES + 1, None])
def test_a_file_of_the_wrong_size_is_named_with_both_sizes(by_hand, tmp_path, size):
    folder = by_hand.parent if size is not None else tmp_path / "nowhere"
    if size is not None:
        os.truncate(by_hand, size)

    with pytest.raises(ValueError) as caught:
        _cifar10.Cifar10(folder, files=(by_hand.name,))

    message = str(caught.value)
    assert message.startswith(f"{folder / by_hand.name}: expected 30730000 bytes (10000 records")
    assert f"found {'nothing' if size is None else f'{size} bytes; '}" in message


def test_a_label_that_cannot_be_is_named_with_its_record(by_hand):
    with by_hand.open("r+b") as file:
        file.seek(17 * 3073)
        file.write(b"\x0a")
    dataset = a_dataset(by_hand)

    with pytest.raises(ValueError, match=r"bin: record 17: expected a label 0\.\.9, found 10"):
        dataset[17]
    assert dataset[16][1] == 6
