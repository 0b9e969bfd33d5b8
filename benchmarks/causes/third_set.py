"""A third set of causes, planted by one who had read neither the rules nor what they had missed.

What is right of each was written down before any was explained; only steps and peaks of memory
were measured, and operators counted. Those of models that other sets have are here;
`third_models` has those of models that were made for this set.
"""

# ruff: noqa: E501  the texts of models are not wrapped

from collections.abc import Mapping
from typing import Final

from benchmarks.causes.planted import Planted, helper, plant
from benchmarks.causes.third_models import CAUSES_OF_NEW_MODELS

CAUSES: Final[Mapping[str, Planted]] = {
    **CAUSES_OF_NEW_MODELS,
    # What the model computes.
    "norms written out": plant(
        "transformer",
        helper(
            "class Norm(nn.Module):\n"
            "    def __init__(self, width):\n"
            "        super().__init__()\n"
            "        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))\n\n"
            "    def forward(self, x):\n"
            "        x = x - x.mean(dim=-1, keepdim=True)\n"
            "        deviation = (x.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()\n"
            "        return x / deviation * self.weight + self.bias"
        ),
        (
            "self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)",
            "self.first, self.second = Norm(WIDTH), Norm(WIDTH)",
        ),
        at="Norm.forward Block.forward",
        kinds="new gone more calls",
    ),
    "a loss of structure": plant(
        "autoencoder",
        helper(
            "def structure(made, images):\n"
            "    ours, theirs = functional.avg_pool2d(made, 3, 1), functional.avg_pool2d(images, 3, 1)\n"
            "    spread = functional.avg_pool2d(made * made, 3, 1) - ours * ours\n"
            "    aimed = functional.avg_pool2d(images * images, 3, 1) - theirs * theirs\n"
            "    both = functional.avg_pool2d(made * images, 3, 1) - ours * theirs\n"
            "    above = (2 * ours * theirs + 1e-4) * (2 * both + 9e-4)\n"
            "    below = (ours * ours + theirs * theirs + 1e-4) * (spread + aimed + 9e-4)\n"
            "    return 1 - (above / below).mean()"
        ),
        (
            "    return functional.mse_loss(model(images), images)",
            (
                "    made = model(images)\n"
                "    return functional.mse_loss(made, images) + 0.1 * structure(made, images)"
            ),
        ),
        at="structure",
        kinds="new more calls",
    ),
    "scores of a mirrored copy": plant(
        "images",
        (
            "            return scores(net(batch))",
            "            return (scores(net(batch)) + scores(net(batch.flip(3)))) / 2",
        ),
        at="build.<locals>.step Net.forward Stage.forward scores",
        kinds="more new calls",
    ),
    "a cache that is put in order": plant(
        "decoder",
        (
            "    def forward(self, x, at):\n        parts",
            (
                "    def reorder(self, order):\n"
                "        self.keys, self.values = self.keys[order], self.values[order]\n\n"
                "    def forward(self, x, at):\n        parts"
            ),
        ),
        (
            "        token = choose(decoder(token, PROMPT + place))\n",
            (
                "        logits = decoder(token, PROMPT + place)\n"
                "        order = logits[:, 0].amax(dim=1).argsort(descending=True)\n"
                "        for layer in decoder.layers:\n"
                "            layer.reorder(order)\n"
                "        token = choose(logits[order])\n"
            ),
        ),
        at="Layer.reorder generate",
        kinds="new calls",
    ),
    "a prompt read in pieces": plant(
        "decoder",
        (
            "    token = choose(decoder(prompt, 0))\n",
            (
                "    for at in range(0, PROMPT, 12):\n"
                "        logits = decoder(prompt[:, at : at + 12], at)\n"
                "    token = choose(logits)\n"
            ),
        ),
        at="generate Decoder.forward Layer.forward Layer.remember",
        kinds="calls more other_shape new",
    ),
    "sequences encoded one at a time": plant(
        "encoder",
        (
            "    return [(tokens[::2, :half], None), (tokens[1::2], None)]",
            (
                "    every = [(row[None, :half], None) for row in tokens[::2]]\n"
                "    return every + [(row[None], None) for row in tokens[1::2]]"
            ),
        ),
        at="encode build.<locals>.step batches_of batches_of.<locals>.<listcomp>",
        kinds="calls more other_shape",
    ),
    "messages of edges instead of nodes": plant(
        "graphs",
        ("self.message(x)[source])", "self.message(x[source]))"),
        at="Layer.gathered",
        kinds="other_shape",
    ),
    "texts read both ways": plant(
        "recurrent",
        (
            "nn.GRU(WIDTH, WIDTH, batch_first=True)",
            "nn.GRU(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)",
        ),
        at="Encoder.forward",
        kinds="more other_shape new",
    ),
    "experts as full as the fullest": plant(
        "router",
        (
            (
                "        parts = x[tokens].split(loads(chosen))\n"
                "        y = torch.cat([expert(part) for expert, part in zip(self.experts, parts)])\n"
            ),
            (
                "        counts = loads(chosen)\n"
                "        most = max(counts)\n"
                "        parts = [functional.pad(part, (0, 0, 0, most - len(part))) for part in x[tokens].split(counts)]\n"
                "        made = [expert(part) for expert, part in zip(self.experts, parts)]\n"
                "        y = torch.cat([rows[:count] for rows, count in zip(made, counts)])\n"
            ),
        ),
        at="Mixture.dispatched Mixture.dispatched.<locals>.<listcomp> Expert.forward",
        kinds="new more other_shape calls",
    ),
    "a gallery searched in pieces": plant(
        "search",
        (
            "        return queries @ self.gallery.t()",
            (
                "        parts = [queries @ part.t() for part in self.gallery.split(400)]\n"
                "        return torch.cat(parts, dim=1)"
            ),
        ),
        at="Index.similar Index.similar.<locals>.<listcomp>",
        kinds="new more other_shape",
    ),
    "an activation that is smooth": plant(
        "texts",
        (
            "        x = functional.relu(self.second(functional.relu(self.first(x))))\n",
            "        x = functional.gelu(self.second(functional.gelu(self.first(x))))\n",
        ),
        at="Classifier.forward",
        kinds="new gone",
    ),
    # How it is trained.
    "images made harder by their slopes": plant(
        "perceptron",
        helper(
            "def harder(model, images, labels):\n"
            "    images = images.clone().requires_grad_()\n"
            "    (slopes,) = torch.autograd.grad(loss_of(model, images, labels)[0], images)\n"
            "    return images.detach() + 0.05 * slopes.sign()"
        ),
        (
            '        with context.phase("forward"):\n',
            '        images = harder(model, images, labels)\n        with context.phase("forward"):\n',
        ),
        at="harder loss_of",
        kinds="new more calls",
    ),
    "a teacher in each step": plant(
        "patches",
        (
            "        functional.cross_entropy(model(batch), labels).backward()\n",
            (
                "        with torch.no_grad():\n"
                "            aims = averaged(batch).softmax(dim=1)\n"
                "        functional.cross_entropy(model(batch), aims).backward()\n"
            ),
        ),
        at="build.<locals>.step Model.forward Block.forward Attention.forward Mlp.forward "
        "Mlp.activated Norm.forward Model.embedded Attention.parts patched",
        kinds="more new calls gone other_shape",
    ),
    "a trunk for the critic alone": plant(
        "policy",
        (
            "        self.actor, self.critic = nn.Linear(WIDTH, ACTIONS), nn.Linear(WIDTH, 1)\n",
            (
                "        self.other = nn.Sequential(\n"
                "            nn.Linear(STATE, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh()\n"
                "        )\n"
                "        self.actor, self.critic = nn.Linear(WIDTH, ACTIONS), nn.Linear(WIDTH, 1)\n"
            ),
        ),
        (
            "        return self.actor(x), self.critic(x).squeeze(-1)",
            "        return self.actor(x), self.critic(self.other(states)).squeeze(-1)",
        ),
        at="Policy.forward update",
        kinds="more other_shape",
    ),
    "an optimizer in one call": plant(
        "policy",
        ("lr=1e-4, foreach=True)", "lr=1e-4, fused=True)"),
        at="update",
        kinds="gone new fewer faster",
    ),
    "one table instead of many": plant(
        "recommender",
        (
            (
                '        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, WIDTH, mode="sum") for _ in range(TABLES))\n\n'
                "    def forward(self, ids):\n"
                "        return torch.cat([table(ids[i]) for i, table in enumerate(self.tables)], dim=1)\n"
            ),
            (
                '        self.table = nn.EmbeddingBag(TABLES * ROWS, WIDTH, mode="sum")\n'
                '        self.register_buffer("starts", (torch.arange(TABLES) * ROWS)[:, None, None])\n\n'
                "    def forward(self, ids):\n"
                "        bags = self.table((ids + self.starts).flatten(0, 1))\n"
                "        return bags.unflatten(0, (TABLES, BATCH)).transpose(0, 1).flatten(1)\n"
            ),
        ),
        at="Tables.forward Tables.forward.<locals>.<listcomp> update",
        kinds="fewer gone faster other_shape new",
    ),
    # What reads and prepares data.
    "rows from the bottom up": plant(
        "records",
        (
            "    return torch.frombuffer(record, dtype=torch.uint8, offset=2).view(3, SIZE, SIZE), label",
            (
                "    starts = range(RECORD_BYTES - SIZE, 1, -SIZE)\n"
                "    pixels = bytearray().join([record[start : start + SIZE] for start in starts])\n"
                "    return torch.frombuffer(pixels, dtype=torch.uint8).view(3, SIZE, SIZE), label"
            ),
        ),
        at="decoded decoded.<locals>.<listcomp>",
        kinds="slower new calls more",
    ),
    "a file opened once": plant(
        "records",
        helper("CONTENTS = {}"),
        (
            (
                '    with file.open("rb") as stream:\n'
                "        stream.seek(place * RECORD_BYTES)\n"
                "        return bytearray(stream.read(RECORD_BYTES))\n"
            ),
            (
                "    if file not in CONTENTS:\n"
                "        CONTENTS[file] = memoryview(file.read_bytes())\n"
                "    start = place * RECORD_BYTES\n"
                "    return bytearray(CONTENTS[file][start : start + RECORD_BYTES])\n"
            ),
        ),
        at="read",
        kinds="faster gone fewer calls",
    ),
    "values rounded": plant(
        "loader",
        (
            "    return [(value - low) / (high - low) for value in record]",
            "    return [round((value - low) / (high - low), 4) for value in record]",
        ),
        at="normalise normalise.<locals>.<listcomp>",
        kinds="slower new calls more",
    ),
    "records compressed in the file": plant(
        "pipeline",
        helper(
            "LINE = bytes(range(256)) * (RECORD_BYTES // 256) + b'\\x01'\n"
            "PACKED_BYTES = len(bz2.compress(LINE))"
        ),
        ("from pathlib import Path\n", "import bz2\nfrom pathlib import Path\n"),
        (
            "    path.write_bytes(line * RECORDS)",
            "    path.write_bytes(bz2.compress(line) * RECORDS)",
        ),
        (
            (
                "        file.seek(position * RECORD_BYTES)\n"
                "        record = bytearray(file.read(RECORD_BYTES))\n"
            ),
            (
                "        file.seek(position * PACKED_BYTES)\n"
                "        record = bytearray(bz2.decompress(file.read(PACKED_BYTES)))\n"
            ),
        ),
        at="waited_for read_record",
        kinds="slower",
        is_exact=False,
    ),
}
