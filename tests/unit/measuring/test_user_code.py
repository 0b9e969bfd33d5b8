import math

import pytest
import torch

from ci_perf.measuring import user_code
from ci_perf.measuring.user_code import WorkloadError
from ci_perf.workload import Context, Workload

CONTEXT = Context(device="cpu", parameters={}, seed=0, data_dir="")


@pytest.mark.parametrize(
    "message",
    [
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and",
        "Expected all tensors to be on the same device, but got mat1 is on cpu, different from",
        "Tensor on device cpu is not on the expected device cuda:0!",
        "copy from device cpu to device cuda:0, but cross-device copies are not allowed!",
        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the",
        "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the",
        "Input and parameter tensors are not at the same device, found input tensor at cpu and",
        "multinomial arguments must have the same device",
    ],
)
def test_tensors_on_two_devices_are_to_be_moved_to_the_device_of_the_run(message):
    assert user_code.remedy(message) == (
        "in build, put the model and every tensor on one device: `model.to(context.device)`, "
        "`tensor.to(context.device)`"
    )


def test_a_torch_without_cuda_names_the_line_to_write_and_how_to_get_one_with_cuda():
    remedy = user_code.remedy("Torch not compiled with CUDA enabled")

    assert "`tensor.to(context.device)`" in remedy
    assert remedy.endswith("install a build with CUDA, which " + user_code.SELECTOR + " names")


@pytest.mark.parametrize(
    "message",
    [
        "",
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
        "Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) ",
        "CUDA error: device-side assert triggered",
    ],
)
def test_nothing_is_advised_where_the_cause_is_not_known(message):
    assert user_code.remedy(message) == ""


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"items_per_step": 0}, "items_per_step: expected a number > 0, found 0"),
        ({"items_per_step": math.inf}, "items_per_step: expected a finite number, found inf"),
        ({"items_per_step": "3"}, "items_per_step: expected a finite number, found '3'"),
        ({"items_per_epoch": 0}, "items_per_epoch: expected a number > 0, or None, found 0"),
        ({"item_unit": "a b"}, "item_unit: expected one word of letters, digits .*, found 'a b'"),
        ({"item_unit": None}, "item_unit: expected one word .*, found None"),
        ({"teardown": 3}, "teardown: expected a function, found int"),
    ],
)
def test_what_a_workload_is_given_is_examined(given, refusal):
    loaded = user_code.Builder("it.py", lambda _: Workload(step=print, **given))

    with pytest.raises(WorkloadError, match=refusal):
        loaded.build(CONTEXT)


@pytest.mark.parametrize(
    ("loss", "refusal"),
    [
        (math.nan, "found nan"),
        (-math.inf, "found -inf"),
        (None, "found None"),
        (torch.ones(3), "found a tensor of 3 elements"),
    ],
)
def test_a_loss_is_a_finite_number(loss, refusal):
    with pytest.raises(WorkloadError, match=f"loss: expected a finite number, {refusal}"):
        user_code.finite(loss, "loss")


@pytest.mark.parametrize("loss", [0.5, torch.tensor(0.5), torch.tensor([0.5])])
def test_a_loss_is_a_number_or_a_tensor_of_one(loss):
    assert user_code.finite(loss, "loss") == 0.5
