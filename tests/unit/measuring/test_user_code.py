import pytest

from ci_perf.measuring import user_code


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
