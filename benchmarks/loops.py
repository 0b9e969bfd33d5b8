"""The step times of `ci_perf.steps` and the callbacks, over those of a bare loop beside them.

    python -m benchmarks.loops [--steps 50]

Each way trains the same model on the same batches, in a process of its own, in turns; needs
transformers, accelerate and lightning. Prints the medians as ratios, and what the line costs a loop
outside of a check.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ci_perf.model.step_report import REPORT_VARIABLE, StepReport
from ci_perf.system import files

COMMON = """
import os, time, torch, ci_perf
torch.set_num_threads(1)
WARMUP, STEPS = 10, {steps}
class Data(torch.utils.data.Dataset):
    def __len__(self): return 10 * (WARMUP + STEPS)
    def __getitem__(self, index): return dict(x=torch.ones(512), labels=torch.ones(512))
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(60)))
    def forward(self, x, labels): return dict(loss=(self.layers(x) - labels).square().mean())
model = Model()
loader = torch.utils.data.DataLoader(Data(), batch_size=64)
optimizer = torch.optim.SGD(model.parameters(), 1e-6)
def train(batch):
    optimizer.zero_grad()
    model(**batch)["loss"].backward()
    optimizer.step()
"""
WAYS = {
    "bare": """
from itertools import pairwise
moments = []
for batch, _ in zip(loader, range(WARMUP + STEPS)):
    train(batch)
    moments.append(time.perf_counter())
from ci_perf.model import codec
from ci_perf.model.step_report import StepReport
times = tuple(b - a for a, b in pairwise(moments[WARMUP - 1:]))
report = StepReport(asked=1, ended=1, steps_s=times, items_per_step=1.0)
open(os.environ["CI_PERF_REPORT"], "w").write(codec.encode(report))
""",
    "steps": "for batch in ci_perf.steps(loader, warmup=WARMUP, steps=STEPS): train(batch)",
    "Hugging Face": """
from transformers import Trainer, TrainingArguments
Trainer(model, TrainingArguments("out", per_device_train_batch_size=64, use_cpu=True, report_to=[],
    save_strategy="no", logging_strategy="no", disable_tqdm=True, max_grad_norm=0),
    train_dataset=Data(), optimizers=(optimizer, None),
    callbacks=[ci_perf.HuggingFaceCallback(warmup=WARMUP, steps=STEPS)]).train()
""",
    "Lightning": """
import lightning.pytorch as lightning
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = model
    def training_step(self, batch, index): return model(**batch)["loss"]
    def configure_optimizers(self): return optimizer
lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, callbacks=[
    ci_perf.LightningCallback(warmup=WARMUP, steps=STEPS)]).fit(Module(), loader)
""",
}
NEEDED = {"Hugging Face": "accelerate", "Lightning": "lightning"}
ROUNDS = 5


def time_step(way: str, steps: int) -> float:
    """Return the median step time of a way, in seconds."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "report.json")
        subprocess.run(
            [sys.executable, "-c", COMMON.format(steps=steps) + WAYS[way]],
            cwd=name,
            env={**os.environ, REPORT_VARIABLE: str(file)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return statistics.median(files.read(file, StepReport).steps_s)


def time_outside(count: int = 1_000_000) -> float:
    """Return what `ci_perf.steps` adds to an iteration outside of a check, in seconds."""
    import ci_perf

    def time_loop(batches: object) -> float:
        start = time.perf_counter()
        for _ in batches:  # type: ignore[attr-defined]
            pass
        return (time.perf_counter() - start) / count

    pairs = [(time_loop(range(count)), time_loop(ci_perf.steps(range(count)))) for _ in range(5)]
    return statistics.median(with_line - bare for bare, with_line in pairs)


def main(steps: int) -> None:
    """Print the ratios of all ways that are installed."""
    ways = [way for way in WAYS if importlib.util.find_spec(NEEDED.get(way, "torch"))]
    rounds = [{way: time_step(way, steps) for way in ways} for _ in range(ROUNDS)]
    ratios = {
        way: sorted(round(each[way] / each["bare"], 4) for each in rounds) for way in ways[1:]
    }
    outside_ns = round(1e9 * time_outside(), 1)
    print(json.dumps({"over_bare": ratios, "outside_ns_per_step": outside_ns}, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=50)
    main(parser.parse_args().steps)
