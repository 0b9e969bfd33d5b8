"""The callbacks of trainers, with their own trainers."""

import os
import subprocess
import sys

import pytest

from ci_perf.model.step_report import REPORT_VARIABLE, StepReport
from ci_perf.system import files

DATA = """
import time, torch, ci_perf
class Data(torch.utils.data.Dataset):
    def __len__(self): return 4000
    def __getitem__(self, index): return {"x": torch.randn(8), "labels": torch.randn(1)}
"""
HUGGING_FACE = """
from transformers import Trainer, TrainingArguments
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def forward(self, x, labels):
        time.sleep(0.01)
        return {"loss": ((self.layer(x) - labels) ** 2).mean()}
arguments = TrainingArguments("out", per_device_train_batch_size=4, use_cpu=True, report_to=[],
                              logging_steps=1, save_strategy="no", max_steps=1000)
trainer = Trainer(Model(), arguments, train_dataset=Data(),
                  callbacks=[ci_perf.HuggingFaceCallback(warmup=2, steps=5)])
trainer.train()
print(trainer.state.global_step)
"""
LIGHTNING = """
import lightning.pytorch as lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def training_step(self, batch, index):
        time.sleep(0.01)
        return ((self.layer(batch["x"]) - batch["labels"]) ** 2).mean()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.01)
trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, max_steps=1000,
                            callbacks=[ci_perf.LightningCallback(warmup=2, steps=5, items=4)])
trainer.fit(Model(), torch.utils.data.DataLoader(Data(), batch_size=4))
print(trainer.global_step)
"""


@pytest.mark.parametrize("program", [HUGGING_FACE, LIGHTNING], ids=["Hugging Face", "Lightning"])
def test_a_trainer_ends_once_its_steps_are_timed(tmp_path, program):
    file = tmp_path / "report.json"

    done = subprocess.run(
        [sys.executable, "-c", DATA + program],
        cwd=tmp_path,
        env={**os.environ, REPORT_VARIABLE: str(file)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines()[-1] == "7", done.stderr
    report = files.read(file, StepReport)
    assert len(report.steps_s) == 5
    assert min(report.steps_s) >= 0.01
    assert report.items_per_step == 4.0
    assert len(report.losses) >= 6
