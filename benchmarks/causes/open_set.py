"""Causes that were planted while the rules of `ci_perf/judging/causes` were written."""

# ruff: noqa: E501  the texts of models are not wrapped

from collections.abc import Mapping
from typing import Final

from benchmarks.causes.planted import Planted, helper, plant

_SLEEP: Final = ("    return [normalise", "    time.sleep(0.004)\n    return [normalise")
# It asks for the time rarely: a call of a built-in function costs more while a launch is profiled.
_SPIN: Final = (
    "    end = time.perf_counter() + {}\n"
    "    while time.perf_counter() < end:\n        sum(range(3000))\n"
)

CAUSES: Final[Mapping[str, Planted]] = {
    "extra operator": plant(
        "transformer",
        (
            "        return x + y\n",
            "        return x + y + torch.sin(torch.sin(x) * 0.01).cos() * 0.01\n",
        ),
        at="Block.forward",
        kinds="new more",
        operators="sin cos",
    ),
    "python loop over the batch": plant(
        "transformer",
        helper("def per_sample(layer, x):\n    return torch.stack([layer(row) for row in x])"),
        ("functional.gelu(self.up(x))", "functional.gelu(per_sample(self.up, x))"),
        at="per_sample",
        kinds="new more",
        operators="addmm mm stack unbind",
    ),
    "fp64 in the perceptron": plant(
        "transformer",
        (
            "        return self.down(functional.gelu(self.up(x)))",
            (
                "        weight, bias = self.up.weight.double(), self.up.bias.double()\n"
                "        hidden = functional.gelu(functional.linear(x.double(), weight, bias))\n"
                "        return self.down(hidden.float())"
            ),
        ),
        at="Mlp.forward",
        kinds="new more other_shape",
        operators="addmm mm _to_copy to copy_ gelu gelu_backward",
    ),
    "hidden size": plant(
        "transformer",
        (
            "WIDTH, HIDDEN, HEADS, BATCH, LENGTH, TOKENS = 64, 256",
            "WIDTH, HIDDEN, HEADS, BATCH, LENGTH, TOKENS = 64, 448",
        ),
        at="Mlp.forward",
        kinds="other_shape",
        operators="addmm mm gelu gelu_backward",
    ),
    "attention by hand": plant(
        "transformer",
        (
            "        y = functional.scaled_dot_product_attention(query, key, value)",
            (
                "        weights = (query @ key.transpose(-2, -1)) / math.sqrt(width // HEADS)\n"
                "        hidden = torch.ones(length, length).triu(1) > 0\n"
                "        y = weights.masked_fill(hidden, -1e9).softmax(-1) @ value"
            ),
        ),
        at="Attention.forward",
        kinds="new more gone",
        operators="bmm _softmax _softmax_backward_data matmul",
    ),
    "checkpointing": plant(
        "transformer",
        (
            "            x = block(x)",
            "            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
        ),
        (
            "import torch\nfrom torch import nn",
            "import torch\nimport torch.utils.checkpoint\nfrom torch import nn",
        ),
        at="Attention.forward Mlp.forward Block.forward",
        kinds="recomputed",
        operators="addmm _scaled_dot_product_flash_attention_for_cpu",
    ),
    "foreach off": plant(
        "transformer",
        ("foreach=True", "foreach=False"),
        at="update",
        kinds="new gone more",
        operators="mul_ addcmul_ addcdiv_ lerp_ sqrt add_",
    ),
    "norms of gradients, logged": plant(
        "transformer",
        (
            "def update(optimizer):\n",
            (
                "def log_gradients(optimizer):\n"
                "    parameters = optimizer.param_groups[0]['params']\n"
                "    return {i: p.grad.norm().item() for i, p in enumerate(parameters)}\n\n\n"
                "def update(optimizer):\n    for _ in range(8):\n        log_gradients(optimizer)\n"
            ),
        ),
        at="log_gradients log_gradients.<locals>.<dictcomp>",
        kinds="new more synchronises",
        operators="linalg_vector_norm _local_scalar_dense item norm",
    ),
    "a custom kernel slower": plant(
        "kernels",
        ("PASSES = 256, 64, 4, 2", "PASSES = 256, 64, 4, 24"),
        at="smooth step build.<locals>.step",
        kinds="slower",
        operators="planted::smooth",
        is_exact=False,
    ),
    "a bigger batch": plant(
        "kernels",
        ("WIDTH, BATCH, LAYERS, PASSES = 256, 64", "WIDTH, BATCH, LAYERS, PASSES = 256, 96"),
        at="features normalised step build.<locals>.step smooth",
        kinds="other_shape",
        operators="addmm planted::smooth tanh sigmoid",
    ),
    "the layout of images": plant(
        "images",
        (
            "return images.float() / 255 - 0.5",
            "return images.float().to(memory_format=torch.channels_last) / 255 - 0.5",
        ),
        at="Stage.forward Net.forward as_input",
        kinds="other_shape new more",
        operators="convolution mkldnn_convolution native_batch_norm max_pool2d_with_indices",
    ),
    "batch norm in training": plant(
        "images",
        ("net = Net().eval()", "net = Net().train()"),
        at="Stage.forward",
        kinds="other_shape new gone more",
        operators="native_batch_norm _native_batch_norm_legit batch_norm add_",
    ),
    "a slower transform": plant(
        "loader",
        (
            "    return [(value - low) / (high - low) for value in record]",
            (
                "    mean = sum((value - low) ** 2 for value in record) + sum(abs(v) for v in record)\n"
                "    return [(value - low) / (high - low) + 0.0 * mean for value in record]"
            ),
        ),
        at="normalise",
        kinds="slower new",
        is_exact=False,
    ),
    "each sample twice": plant(
        "loader",
        ("[normalise(record) for record", "[normalise(normalise(record)) for record"),
        at="normalise fetch",
        kinds="calls",
    ),
    "a loader that sleeps": plant(
        "loader", _SLEEP, at="fetch", kinds="waits new", is_exact=False, seconds={"fetch": 0.004}
    ),
    "sleep and spin": plant(
        "loader",
        _SLEEP,
        ("def log(loss):\n", "def log(loss):\n" + _SPIN.format(0.006)),
        at="log fetch",
        kinds="waits slower new",
        is_exact=False,
        seconds={"fetch": 0.004, "log": 0.006},
    ),
}
