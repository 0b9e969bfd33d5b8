"""The causes, planted by one who had read neither the rules nor what they had missed.

What is right of each was written down before any was explained; only steps and peaks of memory
were measured, and operators counted.
"""

# ruff: noqa: E501  the texts of models are not wrapped

from collections.abc import Mapping
from typing import Final

from benchmarks.causes.planted import Planted, helper, plant

CAUSES: Final[Mapping[str, Planted]] = {
    # What the model computes.
    "tables whose rows are kept short": plant(
        "recommender",
        ('mode="sum")', 'mode="sum", max_norm=1.0)'),
        at="Tables.forward Tables.forward.<locals>.<listcomp>",
        kinds="new more synchronises",
    ),
    "two memories, one above the other": plant(
        "recurrent",
        ("WIDTH, batch_first=True)", "WIDTH, num_layers=2, batch_first=True)"),
        at="Encoder.forward",
        kinds="more other_shape",
    ),
    "experts with gates": plant(
        "router",
        (
            "(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)",
            "(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)\n        self.gate = nn.Linear(WIDTH, HIDDEN)",
        ),
        ("functional.silu(self.up(x))", "functional.silu(self.gate(x)) * self.up(x)"),
        at="Expert.forward",
        kinds="more new",
    ),
    "images held within quantiles": plant(
        "sampler",
        (
            "return (images - (1 - kept) * noise) / (1 + kept)",
            "images = (images - (1 - kept) * noise) / (1 + kept)\n    most = images.abs().flatten(1).quantile(0.995, dim=1).clamp(min=1)[:, None, None, None]\n    return images.clamp(-most, most) / most",
        ),
        at="denoised",
        kinds="new more",
    ),
    "vectors that are hidden": plant(
        "search",
        ("self.seen = []", "self.seen, self.hidden = [], torch.arange(VECTORS) % 50 == 0"),
        ("similarity.topk(", "similarity.masked_fill(self.hidden, -1.0).topk("),
        at="Index.nearest",
        kinds="new",
    ),
    "a bias for each distance": plant(
        "windows",
        (
            "(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)",
            "(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)\n        self.bias = nn.Parameter(torch.zeros(HEADS, 2 * WINDOW - 1))",
        ),
        (
            "y = functional.scaled_dot_product_attention(query, key, value)",
            "places = torch.arange(WINDOW)\n        bias = self.bias[:, places[:, None] - places + WINDOW - 1]\n        y = functional.scaled_dot_product_attention(query, key, value, bias)",
        ),
        at="Attention.forward",
        kinds="new more other_shape gone",
    ),
    "unlikely tokens left out": plant(
        "decoder",
        (
            "return logits.argmax(dim=2)",
            (
                "values, order = logits[:, 0].sort(dim=1, descending=True)\n    shares = values.softmax(dim=1)\n    values = values.masked_fill(shares.cumsum(dim=1) - shares > 0.9, -1e9)\n"
                "    return torch.empty_like(values).scatter_(1, order, values).argmax(dim=1, keepdim=True)"
            ),
        ),
        at="choose",
        kinds="new more other_shape",
    ),
    "messages weighed by who reads them": plant(
        "graphs",
        (
            "return torch.zeros_like(x).index_add(0, target, self.message(x)[source])",
            "sent = self.message(x)[source]\n        weights = torch.sigmoid((sent * x[target]).sum(dim=1, keepdim=True))\n        return torch.zeros_like(x).index_add(0, target, sent * weights)",
        ),
        at="Layer.gathered",
        kinds="new more",
    ),
    "weights made whole in each call": plant(
        "quantised",
        ("return self.whole\n", "return self.levels.float() * self.scales[:, None]\n"),
        at="Quantised.weights",
        kinds="new more",
    ),
    "norms after each layer": plant(
        "kernels",
        ("torch.relu(part(x))", "normalised(torch.relu(part(x)))"),
        at="normalised features",
        kinds="calls more",
    ),
    "layers that read in pieces": plant(
        "encoder",
        ("vocab_size=1000,\n", "vocab_size=1000,\n    chunk_size_feed_forward=8,\n"),
        at="encode",
        kinds="new more other_shape",
    ),
    "queries and keys of one length": plant(
        "transformer",
        (
            "y = functional.scaled_dot_product_attention(query, key, value)",
            "query, key = functional.normalize(query, dim=-1), functional.normalize(key, dim=-1)\n        y = functional.scaled_dot_product_attention(query, key, value, scale=10.0)",
        ),
        at="Attention.forward",
        kinds="new more other_shape",
    ),
    "channels with gates": plant(
        "vision",
        (
            "self.norm = nn.BatchNorm2d(after)\n",
            "self.norm, self.gate = nn.BatchNorm2d(after), nn.Linear(after, after)\n",
        ),
        (
            "return functional.relu(self.norm(self.convolution(x)))",
            "x = functional.relu(self.norm(self.convolution(x)))\n        return x * torch.sigmoid(self.gate(x.mean(dim=(2, 3))))[:, :, None, None]",
        ),
        at="Block.forward",
        kinds="new more",
    ),
    "attention of four heads": plant(
        "diffusion",
        ("(batch, 3, 1, width, rows", "(batch, 3, 4, width // 4, rows"),
        at="Attention.forward",
        kinds="other_shape new more",
    ),
    "masks drawn one over the other": plant(
        "detector",
        (
            "mask[max(int(top), 0) : int(bottom), max(int(left), 0) : int(right)] = number + 1",
            "inside = torch.zeros(SIZE, SIZE, dtype=torch.bool)\n        inside[max(int(top), 0) : int(bottom), max(int(left), 0) : int(right)] = True\n        mask = torch.where(inside, number + 1, mask)",
        ),
        at="drawn",
        kinds="new more other_shape",
    ),
    # How it is trained.
    "dropout written out": plant(
        "patches",
        helper(
            "def dropped(x):\n    kept = (torch.rand_like(x) < 0.9).float()\n    return x * kept / 0.9"
        ),
        (
            "self.attention(self.first(x))\n        return x + self.mlp(self.second(x))",
            "dropped(self.attention(self.first(x)))\n        return x + dropped(self.mlp(self.second(x)))",
        ),
        at="dropped",
        kinds="new more calls",
    ),
    "frames twice as often": plant(
        "speech",
        (", LONGEST = 8, 4000, 256, 80", ", LONGEST = 8, 4000, 256, 40"),
        at="Spectra.powers Spectra.forward Network.forward loss_of centred build.<locals>.step",
        kinds="other_shape",
    ),
    "images turned at random": plant(
        "autoencoder",
        helper(
            "def turned(images):\n    angles, zeros = torch.rand(BATCH) * 0.2 - 0.1, torch.zeros(BATCH)\n    sine, cosine = angles.sin(), angles.cos()\n"
            "    rows = torch.stack([cosine, -sine, zeros, sine, cosine, zeros], dim=1)\n    places = functional.affine_grid(rows.view(BATCH, 2, 3), images.shape, align_corners=False)\n"
            "    return functional.grid_sample(images, places, mode='bicubic', align_corners=False)"
        ),
        ("images.flip(dims=(3,))", "turned(images.flip(dims=(3,)))"),
        at="turned",
        kinds="new calls",
    ),
    "views that are blurred": plant(
        "contrast",
        helper(
            "def blurred(images):\n    line = torch.tensor([1.0, 4.0, 6.0, 4.0, 1.0]) / 16\n    weights = torch.outer(line, line).repeat(3, 1, 1, 1)\n"
            "    return functional.conv2d(images, weights, padding=2, groups=3)"
        ),
        ("return shifted * 0.9 +", "return blurred(shifted) * 0.9 +"),
        at="blurred",
        kinds="new more calls",
    ),
    "images standardised in each step": plant(
        "perceptron",
        (
            "images, labels = next(upcoming)\n",
            "images, labels = next(upcoming)\n        images = (images - images.mean(dim=0)) / (images.std(dim=0) + 1e-6)\n",
        ),
        at="build.<locals>.forward_and_backward",
        kinds="new",
    ),
    # What happens in Python.
    "endings cut off": plant(
        "words",
        helper(
            'ENDING = re.compile(r"(?:ing|able|less|ed|er|s)$")\n\n\ndef stem(word):\n    return ENDING.sub("", word)'
        ),
        ("WORD.findall(text.lower())", "[stem(word) for word in WORD.findall(text.lower())]"),
        at="stem tokens tokens.<locals>.<listcomp>",
        kinds="slower new calls more",
    ),
    "rows printed for the log": plant(
        "texts",
        ("import json\nimport re\n", "import json\nimport logging\nimport pprint\nimport re\n"),
        (
            "length = max(len(row) for row in rows)\n",
            'logging.getLogger("texts").debug("rows: %s", pprint.pformat(rows[:6], compact=True))\n    length = max(len(row) for row in rows)\n',
        ),
        at="padded",
        kinds="slower new calls more",
    ),
    "rows of any type": plant(
        "loader",
        helper(
            "def plain(value):\n    if isinstance(value, torch.Tensor):\n        return value.tolist()\n    if isinstance(value, dict):\n        return {name: plain(each) for name, each in value.items()}\n"
            "    if isinstance(value, (list, tuple)):\n        return [plain(each) for each in value]\n    return value if isinstance(value, (int, float)) else float(value)"
        ),
        ("return torch.tensor(rows)", "return torch.tensor(plain(rows))"),
        at="plain plain.<locals>.<listcomp> collate",
        kinds="slower new calls more",
    ),
    "limits from a configuration": plant(
        "loader",
        helper(
            "class Node:\n    def __init__(self, **values):\n        self.__dict__.update(values)\n\n\nCONFIG = Node(data=Node(scaling=Node(factor=1.0, offset=0.0)))"
        ),
        (
            "[(value - low) / (high - low) for value in record]",
            "[\n        (value - low) / (high - low) * CONFIG.data.scaling.factor + CONFIG.data.scaling.offset\n        for value in record\n    ]",
        ),
        at="normalise normalise.<locals>.<listcomp>",
        kinds="slower",
        is_exact=False,
    ),
    "a dialect that is guessed": plant(
        "tabular",
        (
            "return list(csv.reader(io.StringIO(text)))",
            'dialect = csv.Sniffer().sniff(text[:1000], delimiters=",;\\t")\n    return list(csv.reader(io.StringIO(text), dialect))',
        ),
        at="parsed",
        kinds="slower new calls more",
    ),
    "boxes that are averaged": plant(
        "detector",
        helper(
            "def merged(kept, boxes):\n    made = []\n    for box in kept:\n        alike = [other for other in boxes if overlap(box, other) >= OVERLAP]\n"
            "        made.append([sum(values) / len(alike) for values in zip(*alike)])\n    return made"
        ),
        ("return drawn(suppressed(boxes))", "return drawn(merged(suppressed(boxes), boxes))"),
        at="merged merged.<locals>.<listcomp> overlap",
        kinds="slower new calls more",
    ),
    "places drawn by numpy": plant(
        "rollouts",
        ("import torch\nfrom", "import numpy as np\nimport torch\nfrom"),
        (
            "places = torch.randint(MOST, (SAMPLE,))\n",
            "shares = np.abs(self.rewards.numpy().astype(np.float64)) + 1e-3\n        places = torch.from_numpy(np.random.choice(MOST, SAMPLE, p=shares / shares.sum()))\n",
        ),
        at="Memory.sample",
        kinds="slower new gone calls more",
    ),
    "paths resolved for each record": plant(
        "records",
        ('with file.open("rb") as', 'with file.expanduser().resolve(strict=True).open("rb") as'),
        at="read",
        kinds="slower new calls more",
    ),
    # What waits.
    "weights sent by a thread that is joined": plant(
        "rollouts",
        helper(
            "def sent(network):\n    sender = threading.Thread(target=time.sleep, args=(2e-4,))\n    sender.start()\n    sender.join()"
        ),
        ("follow(target, network)\n", "follow(target, network)\n        sent(network)\n"),
        at="sent",
        kinds="new calls",
    ),
    "a journal that is synced": plant(
        "records",
        ("import struct\n", "import os\nimport struct\n"),
        helper(
            'def noted(folder, loss):\n    with (folder / "losses.txt").open("a") as journal:\n        journal.write(f"{loss.item():.4f}\\n")\n        journal.flush()\n        os.fsync(journal.fileno())\n'
            "    return loss"
        ),
        (
            "nn.functional.cross_entropy(model(images), labels)",
            "noted(file.parent, nn.functional.cross_entropy(model(images), labels))",
        ),
        at="noted",
        kinds="new calls slower synchronises more",
    ),
    "names of kinds read for each record": plant(
        "pipeline",
        ("from pathlib import Path\n", "import json\nfrom pathlib import Path\n"),
        (
            "path.write_bytes(line * RECORDS)\n",
            'path.write_bytes(line * RECORDS)\n    names = [f"kind {number}" for number in range(500)]\n    (path.parent / "names.json").write_text(json.dumps(names))\n',
        ),
        (
            "return record[0] % 10, torch",
            'names = json.loads((path.parent / "names.json").read_text())\n    return names.index(f"kind {record[0] % 10}"), torch',
        ),
        at="waited_for read_record",
        kinds="slower",
        is_exact=False,
    ),
    "features asked of a pool": plant(
        "tabular",
        ("import subprocess\n", "import subprocess\nimport time\nfrom concurrent import futures\n"),
        helper(
            "POOL = futures.ThreadPoolExecutor(max_workers=1)\n\n\ndef looked_up(rows):\n    time.sleep(5e-4)\n    return rows\n\n\ndef enriched(rows):\n    return POOL.submit(looked_up, rows).result()"
        ),
        ("rows = parsed(text)\n", "rows = enriched(parsed(text))\n"),
        at="enriched looked_up",
        kinds="new calls",
    ),
    # Other types.
    "similarities in double precision": plant(
        "search",
        ("similarity.topk(", "similarity.double().topk("),
        at="Index.nearest",
        kinds="new other_shape",
    ),
    # What became faster.
    "layers of nodes instead of edges": plant(
        "points",
        (
            "edges = self.edges(x, near)\n        return functional.relu(self.mix(edges))",
            (
                "own, other = self.mix.weight.chunk(2, dim=1)\n        centres = functional.linear(x, own - other, self.mix.bias)[:, :, None]\n"
                "        edges = centres + picked(functional.linear(x, other), near)\n        return functional.relu(edges)"
            ),
        ),
        at="EdgeLayer.forward EdgeLayer.edges",
        kinds="faster gone fewer other_shape new more",
    ),
    "boxes apart passed over": plant(
        "detector",
        (
            "height = max(0.0, min(",
            "if bottom <= other_top or other_bottom <= top or right <= other_left or other_right <= left:\n        return 0.0\n    height = max(0.0, min(",
        ),
        at="overlap",
        kinds="faster fewer",
    ),
}
