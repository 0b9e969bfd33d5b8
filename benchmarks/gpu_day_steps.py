"""The steps of benchmarks.gpu_day: a workload file, and a command that prints its step times.

The head of a check sets `IS_HEAD`. On a CPU the steps are small: they rehearse the day.
"""

import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator

import torch
from torch import nn

from ci_perf.workload import Context, Workload

IS_HEAD = False
# One more is 5 % more work.
BLOCKS = 20
# Of a command, on a GPU and in a rehearsal.
PRINTED, REHEARSED = 150, 20


def build(context: Context) -> Workload:
    """Build the step of a kind, as the base or as the head has it."""
    return KINDS[str(context.parameters["kind"])](context)


def _is_head(context: Context) -> bool:
    return bool(context.parameters.get("is_head", IS_HEAD))


def _share(context: Context) -> float:
    """Return by how much the steps of this side are longer."""
    return float(context.parameters.get("percent", 0)) / 100 if _is_head(context) else 0.0


class _Residual(nn.Module):  # type: ignore[misc]
    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        stride = 1 if before == width else 2
        self._body = nn.Sequential(
            nn.Conv2d(before, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        shrinking = nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width)
        self._shortcut = nn.Sequential(*shrinking if stride > 1 else ())

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.relu(self._body(images) + self._shortcut(images))


def _resnet18(width: int) -> nn.Module:
    widths = [width, width, 2 * width, 4 * width, 8 * width]
    blocks = [
        _Residual(*shape)
        for before, after in itertools.pairwise(widths)
        for shape in ((before, after), (after, after))
    ]
    stem = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU()
    end = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 1000)
    return nn.Sequential(*stem, nn.MaxPool2d(3, 2, 1), *blocks, *end)


def _trainer(device: str) -> Callable[[torch.Tensor], None]:
    """Return a step that trains a ResNet-18 in bf16, in channels_last, by a batch of images."""
    width = 64 if device != "cpu" else 8
    model = _resnet18(width).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train(images: torch.Tensor) -> None:
        optimizer.zero_grad()
        with torch.autocast(torch.device(device).type, torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images), labels[: len(images)])
        loss.backward()
        optimizer.step()

    labels = torch.arange(1000, device=device)
    return train


def _shape(device: str) -> tuple[int, int]:
    """Return how many images a batch has, and their side."""
    return (256, 224) if device != "cpu" else (8, 32)


def _long(context: Context) -> Workload:
    """Long kernels; with `cudnn`, the head lets cuDNN choose its algorithms."""
    torch.backends.cudnn.benchmark = _is_head(context) and "cudnn" in context.parameters
    batch, side = _shape(context.device)
    images = torch.randn(batch, 3, side, side, device=context.device)
    images = images.to(memory_format=torch.channels_last)
    train = _trainer(context.device)
    step = _plant(lambda: train(images), context)
    return Workload(step=step, items_per_step=batch, item_unit="image")


def _plant(step: Callable[[], None], context: Context) -> Callable[[], None]:
    """Return a step that is longer by the share: by one kernel on its stream, on a CPU by a loop.

    The kernel waits for clock ticks, which are longer where a step slows the clock down: so they
    are timed behind steps.
    """
    share, on_gpu = _share(context), context.device != "cpu"
    if not share:
        return step

    def wait(ticks: int) -> None:
        if on_gpu:
            torch.cuda._sleep(ticks)  # noqa: SLF001  torch's own tests wait by it
        else:
            for _ in range(ticks):
                pass

    def seconds(ticks: int) -> float:
        start = time.perf_counter()
        for _ in range(10):
            step()
            wait(ticks)
        if on_gpu:
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / 10

    some = 10**7 if on_gpu else 10**5
    seconds(0)  # reaches the clocks of a busy GPU
    step_s = seconds(0)
    ticks = round(share * step_s / max(seconds(some) - step_s, 1e-6) * some)

    def longer() -> None:
        step()
        wait(ticks)

    return longer


def _gpt(context: Context) -> Workload:
    """Short kernels: one block of a GPT, many times; `graph` replays them as a CUDA graph."""
    torch.backends.mha.set_fastpath_enabled(False)  # which has fewer, longer kernels
    layer = nn.TransformerEncoderLayer(
        256, 4, 1024, 0.0, "gelu", batch_first=True, norm_first=True, device=context.device
    ).eval()
    tokens = torch.randn(1, 64, 256, device=context.device)
    mask = nn.Transformer.generate_square_subsequent_mask(64, device=torch.device(context.device))
    blocks = BLOCKS + round(BLOCKS * _share(context))

    def step() -> None:
        hidden = tokens
        with torch.no_grad():
            for _ in range(blocks):
                hidden = layer(hidden, mask, is_causal=True)

    if "graph" not in context.parameters or context.device == "cpu":
        return Workload(step=step)
    step()  # nothing may be captured for the first time
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return Workload(step=graph.replay)


class _Images:
    """Images that take a CPU some milliseconds each."""

    def __init__(self, side: int) -> None:
        self._side = side

    def __len__(self) -> int:
        return 10**9

    def __getitem__(self, index: int) -> torch.Tensor:
        image = torch.rand(3, self._side, self._side)
        for _ in range(5):
            image = nn.functional.avg_pool2d(image, 3, 1, 1)
        return image


def _loader(context: Context) -> Workload:
    """Wait for images in each step; the head has workers, pinned memory and copies ahead."""
    on_gpu, is_repaired = context.device != "cpu", _is_head(context)
    batch, side = _shape(context.device)
    loader = torch.utils.data.DataLoader(
        _Images(side),
        batch_size=batch // 4,
        num_workers=min(16 if on_gpu else 1, os.cpu_count() or 1) if is_repaired else 0,
        pin_memory=is_repaired and on_gpu,
    )
    batches: list[Iterator[torch.Tensor]] = [iter(loader)]
    train = _trainer(context.device)

    def step() -> None:
        with context.phase("data"):
            images = next(batches[0])
        with context.phase("h2d"):
            images = images.to(context.device, non_blocking=is_repaired)
        train(images)

    items = batch // 4
    return Workload(step=step, items_per_step=items, item_unit="image", teardown=batches.clear)


def _compiled(context: Context) -> Workload:
    """Compile a step, on a GPU to a kernel of Triton; the head has one more call."""
    numbers = torch.randn(2**24 if context.device != "cpu" else 2**16, device=context.device)
    is_edited = _is_head(context)

    def step() -> torch.Tensor:
        found = torch.relu(numbers * 2 + 1)
        return torch.sigmoid(found) if is_edited else found

    return Workload(step=torch.compile(step))


KINDS: dict[str, Callable[[Context], Workload]] = {
    "long": _long,
    "gpt": _gpt,
    "loader": _loader,
    "compiled": _compiled,
}

if __name__ == "__main__":
    device, on_gpu = sys.argv[1], sys.argv[1] != "cpu"
    if not on_gpu:
        torch.set_num_threads(1)  # several wait for each other where others use the cores
    work = build(
        Context(device=device, parameters={"kind": "gpt", "percent": 5}, seed=0, data_dir="")
    )
    for _ in range(PRINTED if on_gpu else REHEARSED):
        start = time.perf_counter()
        for _ in range(10 if on_gpu else 1):
            work.step()
        if on_gpu:
            torch.cuda.synchronize()
        print(f"step took {time.perf_counter() - start}", flush=True)
