"""A second set of causes, planted by one who had read neither the rules nor what they had missed.

What is right of each was written down before any was explained. Steps were timed before that, and
the operators of a step counted: causes of less than 4 % were changed or left out, and the kinds and
operators of a few corrected. Those of models that other sets have are here; `second_frozen_models`
has those of models that were made for this set.
"""

# ruff: noqa: E501  the texts of models are not wrapped

from collections.abc import Mapping
from typing import Final

from benchmarks.causes.planted import Planted, helper, plant
from benchmarks.causes.second_frozen_models import CAUSES_OF_NEW_MODELS

CAUSES: Final[Mapping[str, Planted]] = {
    **CAUSES_OF_NEW_MODELS,
    # What reads and prepares data.
    "batches of a quarter of the size": plant(
        "pipeline",
        (
            "RECORDS, BATCH, SHAPE, WORKERS = 192, 32, (3, 32, 32), 1",
            "RECORDS, BATCH, SHAPE, WORKERS = 192, 8, (3, 32, 32), 1",
        ),
        at="waited_for features build.<locals>.step",
        kinds="other_shape more calls waits",
        operators="convolution mkldnn_convolution tanh relu",
    ),
    "a file read whole for each record": plant(
        "pipeline",
        (
            (
                '    with path.open("rb") as file:\n'
                "        file.seek(position * RECORD_BYTES)\n"
                "        record = bytearray(file.read(RECORD_BYTES))\n"
            ),
            (
                "    start = position * RECORD_BYTES\n"
                "    record = bytearray(path.read_bytes()[start : start + RECORD_BYTES])\n"
            ),
        ),
        at="waited_for",
        kinds="waits",
        is_exact=False,
    ),
    "workers started in each epoch": plant(
        "pipeline",
        ("        persistent_workers=WORKERS > 0,\n", "        persistent_workers=False,\n"),
        at="waited_for",
        kinds="waits slower",
        is_exact=False,
    ),
    "a checksum of each record": plant(
        "records",
        ("import struct\n", "import hashlib\nimport struct\n"),
        (
            '    (label,) = struct.unpack_from("<H", record)\n',
            (
                "    if not hashlib.sha256(record).hexdigest():\n"
                '        raise ValueError("the record is damaged")\n'
                '    (label,) = struct.unpack_from("<H", record)\n'
            ),
        ),
        at="decoded",
        kinds="slower new",
        is_exact=False,
    ),
    "crops at random places": plant(
        "records",
        (
            "    return image[:, 4 : 4 + CROP, 4 : 4 + CROP]",
            (
                "    top, left = torch.randint(0, SIZE - CROP, (2,)).tolist()\n"
                "    return image[:, top : top + CROP, left : left + CROP]"
            ),
        ),
        at="cropped",
        kinds="new",
        operators="randint random_ empty",
    ),
    "records parsed from JSON": plant(
        "loader",
        ("import threading\n", "import json\nimport threading\n"),
        (
            "LOCK = threading.Lock()\n",
            "LOCK = threading.Lock()\nTEXTS = [json.dumps(record) for record in RECORDS]\n",
        ),
        (
            "    return [normalise(record) for record in RECORDS]",
            "    return [normalise(json.loads(text)) for text in TEXTS]",
        ),
        at="fetch fetch.<locals>.<listcomp>",
        kinds="slower new",
        is_exact=False,
    ),
    "rows made tensors one by one": plant(
        "loader",
        (
            "    return torch.tensor(rows)",
            "    return torch.stack([torch.tensor(row) for row in rows])",
        ),
        at="collate collate.<locals>.<listcomp>",
        kinds="new more other_shape",
        operators="stack cat lift_fresh",
    ),
    # What the model computes.
    "heads in a loop": plant(
        "transformer",
        (
            "        y = functional.scaled_dot_product_attention(query, key, value)",
            (
                "        y = torch.cat(\n"
                "            [\n"
                "                functional.scaled_dot_product_attention(*(part[:, i : i + 1] for part in (query, key, value)))\n"
                "                for i in range(HEADS)\n"
                "            ],\n"
                "            dim=1,\n"
                "        )"
            ),
        ),
        at="Attention.forward Attention.forward.<locals>.<listcomp> "
        "Attention.forward.<locals>.<listcomp>.<genexpr>",
        kinds="new more other_shape",
        operators="_scaled_dot_product_flash_attention_for_cpu scaled_dot_product_attention "
        "_scaled_dot_product_flash_attention_for_cpu_backward cat slice_backward copy_ add_ zeros",
    ),
    "rotary angles made in each layer": plant(
        "transformer",
        helper(
            "def rotated(x):\n"
            "    half = x.shape[-1] // 2\n"
            "    rates = 1e4 ** (-torch.arange(half) / half)\n"
            "    angles = torch.outer(torch.arange(x.shape[-2]).float(), rates)\n"
            "    left, right = x.chunk(2, dim=-1)\n"
            "    cosine, sine = angles.cos(), angles.sin()\n"
            "    return torch.cat([left * cosine - right * sine, left * sine + right * cosine], dim=-1)"
        ),
        (
            "scaled_dot_product_attention(query, key, value)",
            "scaled_dot_product_attention(rotated(query), rotated(key), value)",
        ),
        at="rotated",
        kinds="new calls",
        operators="mul cat add sub sin cos copy_ pow outer arange",
    ),
    "keys and values in bfloat16": plant(
        "decoder",
        (
            "        self.keys = torch.zeros(BATCH, HEADS, PROMPT + NEW, WIDTH // HEADS)\n",
            (
                "        shape = BATCH, HEADS, PROMPT + NEW, WIDTH // HEADS\n"
                "        self.keys = torch.zeros(shape, dtype=torch.bfloat16)\n"
            ),
        ),
        (
            "        return self.keys[:, :, :end], self.values[:, :, :end]",
            "        return self.keys[:, :, :end].float(), self.values[:, :, :end].float()",
        ),
        at="Layer.remember",
        kinds="new more other_shape",
        operators="_to_copy to copy_",
    ),
    "tokens of the answer made less likely": plant(
        "decoder",
        helper(
            "def penalised(logits, answers):\n"
            "    for row, answer in zip(logits, answers.tolist()):\n"
            "        row[0, answer] /= 1.2\n"
            "    return logits"
        ),
        (
            (
                "    for place in range(NEW - 1):\n"
                "        token = choose(decoder(token, PROMPT + place))\n"
            ),
            (
                "    answers = token\n"
                "    for place in range(NEW - 1):\n"
                "        token = choose(penalised(decoder(token, PROMPT + place), answers))\n"
                "        answers = torch.cat([answers, token], dim=1)\n"
            ),
        ),
        at="penalised",
        kinds="new calls",
        operators="index index_put_ _index_put_impl_ div_ select _to_copy",
    ),
    "states of all layers averaged": plant(
        "encoder",
        (
            "    return model(tokens, attention_mask=mask).pooler_output",
            (
                "    made = model(tokens, attention_mask=mask, output_hidden_states=True)\n"
                "    states = torch.stack(made.hidden_states).mean(dim=0)\n"
                "    return torch.cat([made.pooler_output, states.amax(dim=1), states.mean(dim=1)], dim=1)"
            ),
        ),
        at="encode",
        kinds="new more",
        operators="stack cat mean amax sum",
    ),
    "neighbours chosen by a list": plant(
        "graphs",
        ("self.message(x)[source])", "self.message(x)[source.tolist()])"),
        at="Layer.gathered",
        kinds="slower new more other_shape",
        operators="lift_fresh index _local_scalar_dense",
    ),
    "distances instead of products": plant(
        "search",
        (
            "        return queries @ self.gallery.t()",
            "        return -torch.cdist(queries, self.gallery)",
        ),
        at="Index.similar",
        kinds="new gone other_shape",
        operators="_cdist_forward cdist _euclidean_dist neg mm matmul cat clamp_min_ sqrt_ pow sum mul",
    ),
    "a line of the log in compiled code": plant(
        "compiled",
        (
            "import torch\nfrom torch import nn",
            "import logging\n\nimport torch\nfrom torch import nn",
        ),
        (
            "    return (x - x.mean(dim=1, keepdim=True)) / (x.std(dim=1, keepdim=True) + 1e-5)",
            (
                "    centred = x - x.mean(dim=1, keepdim=True)\n"
                '    logging.getLogger("net").debug("%d rows are centred", len(centred))\n'
                "    return centred / (x.std(dim=1, keepdim=True) + 1e-5)"
            ),
        ),
        at="normalised",
        kinds="breaks_graph slower new",
    ),
    "rows one by one in the custom operator": plant(
        "kernels",
        (
            "        work[:, 1:] = 0.5 * work[:, 1:] + 0.5 * work[:, :-1]\n",
            "        for row in work:\n            row[1:] = 0.5 * row[1:] + 0.5 * row[:-1]\n",
        ),
        at="smooth build.<locals>.step",
        kinds="slower",
        operators="planted::smooth",
        is_exact=False,
    ),
    "weights that are normalised in each call": plant(
        "kernels",
        (
            "    return nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))",
            (
                "    normed = nn.utils.parametrizations.weight_norm\n"
                "    return nn.ModuleList(normed(nn.Linear(WIDTH, WIDTH)) for _ in range(LAYERS))"
            ),
        ),
        at="features",
        kinds="new",
        operators="_weight_norm_interface _weight_norm",
    ),
    # How it is trained.
    "a penalty of weights by hand": plant(
        "texts",
        (
            "        loss = functional.cross_entropy(model(words), kinds)\n",
            (
                "        loss = functional.cross_entropy(model(words), kinds)\n"
                "        for weights in model.parameters():\n"
                "            loss = loss + 1e-4 * weights.square().sum() + 1e-5 * weights.abs().sum()\n"
            ),
        ),
        at="build.<locals>.step",
        kinds="new more",
        operators="pow square sum mul abs sgn sign add add_",
    ),
    "gradients looked through for anomalies": plant(
        "autoencoder",
        (
            "        loss_of(model, batch).backward()\n",
            (
                "        with torch.autograd.set_detect_anomaly(True):\n"
                "            loss_of(model, batch).backward()\n"
            ),
        ),
        at="build.<locals>.step loss_of Encoder.forward Decoder.forward",
        kinds="new more slower synchronises",
        operators="isnan ne any _is_any_true _local_scalar_dense item is_nonzero",
    ),
    "gradients that are checked": plant(
        "perceptron",
        helper(
            "def checked(model):\n"
            "    for weights in model.parameters():\n"
            "        if not torch.isfinite(weights.grad).all():\n"
            '            raise FloatingPointError("a gradient is not finite")'
        ),
        (
            "            optimizer.step()\n",
            "            checked(model)\n            optimizer.step()\n",
        ),
        at="checked",
        kinds="new more synchronises calls",
        operators="_local_scalar_dense item is_nonzero all isfinite abs ne eq mul",
    ),
    # What happens beside the model.
    "a metric of the whole history": plant(
        "recommender",
        helper(
            "HISTORY = [torch.rand(2, BATCH) for _ in range(60)]\n\n\n"
            "def area_below_the_curve(logits, clicks):\n"
            "    HISTORY.append(torch.stack([logits.detach(), clicks]))\n"
            "    del HISTORY[0]\n"
            "    scores, rights = torch.cat(HISTORY, dim=1)\n"
            "    ranks = scores.argsort().argsort().float() + 1\n"
            "    hits = rights.sum()\n"
            "    return ((ranks * rights).sum() - hits * (hits + 1) / 2) / (hits * (len(rights) - hits))"
        ),
        (
            "    return functional.binary_cross_entropy_with_logits(model(ids), clicks)",
            (
                "    logits = model(ids)\n"
                "    area_below_the_curve(logits, clicks)\n"
                "    return functional.binary_cross_entropy_with_logits(logits, clicks)"
            ),
        ),
        at="area_below_the_curve",
        kinds="new calls",
        operators="sort argsort cat",
    ),
    "frames that are held back": plant(
        "rollouts",
        (
            "        return self.states, -self.states.square().sum(dim=1)",
            "        time.sleep(4e-5)\n        return self.states, -self.states.square().sum(dim=1)",
        ),
        at="World.advance",
        kinds="waits new",
        is_exact=False,
    ),
    "a tensor written into a line of the log": plant(
        "rollouts",
        ("import copy\n", "import copy\nimport logging\n"),
        (
            "        aim = rewards + 0.9 * target(states).amax(dim=1)\n",
            (
                "        aim = rewards + 0.9 * target(states).amax(dim=1)\n"
                '        logging.debug(f"the aim is {aim[:64]}")\n'
            ),
        ),
        at="learn",
        kinds="slower new more synchronises",
        operators="_local_scalar_dense item select unbind abs masked_select",
    ),
}
