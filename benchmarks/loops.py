"""The step times of `ci_perf.steps` and the callbacks, over those of a clock in the same loop.

    python -m benchmarks.loops [--steps 50]

Each way trains the same model, which reads a clock whenever it is called: from call to call is a
step. Needs transformers, accelerate and lightning. Prints the median of the reported times over
that of the same steps by the clock, and what a line costs outside of a check.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import timeit
from itertools import pairwise
from pathlib import Path

import ci_perf
from ci_perf.model.step_report import REPORT_VARIABLE, StepReport
from ci_perf.system import files

COMMON = """
import json, time, torch, ci_perf
torch.set_num_threads(1)
WARMUP, STEPS, BATCH = 10, {steps}, 64
class Data(torch.utils.data.Dataset):
    def __len__(self): return BATCH * (WARMUP + STEPS + 5)
    def __getitem__(self, index): return dict(x=torch.ones(512), labels=torch.ones(512))
moments = []
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(40)))
    def forward(self, x, labels):
        moments.append(time.perf_counter())
        return dict(loss=(self.layers(x) - labels).square().mean())
model = Model()
optimizer = torch.optim.SGD(model.parameters(), 1e-6)
loader = torch.utils.data.DataLoader(Data(), batch_size=BATCH)
"""
WAYS = {
    "steps": """
for batch in ci_perf.steps(loader, warmup=WARMUP, steps=STEPS):
    optimizer.zero_grad()
    model(**batch)["loss"].backward()
    optimizer.step()
""",
    "Hugging Face": """
from transformers import Trainer, TrainingArguments
Trainer(model, TrainingArguments("out", per_device_train_batch_size=BATCH, use_cpu=True,
    report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True, max_grad_norm=0),
    train_dataset=Data(), optimizers=(optimizer, None),
    callbacks=[ci_perf.HuggingFaceCallback(warmup=WARMUP, steps=STEPS)]).train()
""",
    "Lightning": """
import lightning.pytorch as lightning
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = model
    def training_step(self, batch, index): return self.model(**batch)["loss"]
    def configure_optimizers(self): return optimizer
lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, callbacks=[
    ci_perf.LightningCallback(warmup=WARMUP, steps=STEPS)]).fit(Module(), loader)
""",
}
NEEDED = {"steps": "torch", "Hugging Face": "accelerate", "Lightning": "lightning"}
WARMUP = 10


def compare(way: str, steps: int) -> float:
    """Return the median of the reported step times over that of the clock."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "report.json")
        said = subprocess.run(
            [sys.executable, "-c", f"{COMMON.format(steps=steps)}{WAYS[way]}print(moments)"],
            cwd=name,
            env={**os.environ, REPORT_VARIABLE: str(file)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        reported = files.read(file, StepReport).steps_s
    # The last step that is timed ends with the loop, where the model is not called any more.
    by_clock = [
        after - before for before, after in pairwise(json.loads(said.stdout.split("\n")[-2]))
    ]
    return float(statistics.median(reported[:-1]) / statistics.median(by_clock[WARMUP:]))


def time_lines(count: int = 1_000_000) -> float:
    """Return what `steps` and `record` add to an iteration outside of a check, in seconds."""
    bare = "for _ in range(count): pass"
    with_lines = "for _ in ci_perf.steps(range(count)): ci_perf.record(loss=1.0)"
    known = {"ci_perf": ci_perf, "count": count}
    best = [min(timeit.repeat(each, number=1, globals=known)) for each in (bare, with_lines)]
    return (best[1] - best[0]) / count


def main(steps: int) -> None:
    """Print the ratio of each way that is installed."""
    ways = [way for way, module in NEEDED.items() if importlib.util.find_spec(module)]
    ratios = {way: round(compare(way, steps), 4) for way in ways}
    outside_ns = round(1e9 * time_lines(), 1)
    print(json.dumps({"over_clock": ratios, "outside_ns_per_step": outside_ns}, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=50)
    main(parser.parse_args().steps)
