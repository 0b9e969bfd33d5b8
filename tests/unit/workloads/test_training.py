"""The training step that the image classifiers share: accumulation of gradients, loss scaling."""

import pytest
import torch

import _classifier
from ci_perf.workload import Context

CONTEXT = Context(device="cpu", parameters={}, seed=0, data_dir="")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def a_training(batches, **more):
    """A linear model with weights that are always the same, and its training."""
    model = torch.nn.Linear(4, 3)
    with torch.no_grad():
        model.weight.copy_(torch.arange(12.0).view(3, 4) / 12)
        model.bias.zero_()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, _classifier.training(
        CONTEXT, model, optimizer, batches, logits_of=model, items_per_epoch=80, **more
    )


def test_gradients_of_two_half_batches_give_the_step_of_the_whole_batch():
    images, labels = torch.randn(8, 4), torch.randint(0, 3, (8,))
    halves = [(images[:4], labels[:4]), (images[4:], labels[4:])]
    at_once, whole = a_training([(images, labels)])
    accumulated, in_halves = a_training(halves, gradient_accumulation=2)

    for _ in range(3):
        whole.step()
        in_halves.step()

        assert in_halves.loss() == pytest.approx(whole.loss())
        assert torch.allclose(accumulated.weight, at_once.weight)
    assert in_halves.items_per_step == whole.items_per_step == 8


def test_in_fp16_the_loss_is_scaled_and_a_gradient_that_overflows_updates_nothing():
    """The scale is 65,536 at first: a gradient of 1,000 times that is beyond the range of fp16."""
    batches = [(torch.full((2, 4), 1000.0), torch.zeros(2, dtype=torch.long))]
    model, training = a_training(batches, amp="fp16")
    before = model.weight.detach().clone()

    training.step()
    assert torch.equal(model.weight, before)

    for _ in range(20):  # each overflow halves the scale
        training.step()
    assert not torch.equal(model.weight, before)
    assert model.weight.isfinite().all()
