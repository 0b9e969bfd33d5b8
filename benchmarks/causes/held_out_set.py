"""Causes that were planted when the rules were frozen: none of these has changed a rule."""

# ruff: noqa: E501  the texts of models are not wrapped

from collections.abc import Mapping
from typing import Final

from benchmarks.causes.planted import Planted, helper, plant

CAUSES: Final[Mapping[str, Planted]] = {
    "a second gallery in fp64": plant(
        "search",
        (
            "        self.seen = []\n",
            "        self.seen = []\n        self.exact = self.gallery.double()\n",
        ),
        at="Index.__init__",
        kinds="holds_more",
        is_memory=True,
    ),
    "answers that are kept": plant(
        "search",
        (
            "        return similarity.topk(NEAREST, dim=1)",
            (
                "        self.seen.append(similarity[:, :1000].clone())\n"
                "        return similarity.topk(NEAREST, dim=1)"
            ),
        ),
        at="Index.nearest",
        kinds="grows",
        is_memory=True,
    ),
    "a sort for the nearest": plant(
        "search",
        (
            "        return similarity.topk(NEAREST, dim=1)",
            (
                "        values, places = similarity.sort(dim=1, descending=True)\n"
                "        return values[:, :NEAREST], places[:, :NEAREST]"
            ),
        ),
        at="Index.nearest",
        kinds="new gone",
        operators="sort topk",
    ),
    "a conversion and back in each step": plant(
        "search",
        (
            "        return queries @ self.gallery.t()",
            "        return queries @ self.gallery.double().float().t()",
        ),
        at="Index.similar",
        kinds="new more",
        operators="_to_copy to copy_",
    ),
    "a cell in a loop": plant(
        "recurrent",
        (
            "        return self.memory(self.embed(words))[0]",
            (
                "        state, states = torch.zeros(BATCH, WIDTH), []\n"
                "        for word in self.embed(words).unbind(1):\n"
                "            state = self.cell(word, state)\n"
                "            states.append(state)\n"
                "        return torch.stack(states, dim=1)"
            ),
        ),
        at="Encoder.forward",
        kinds="new gone more",
        operators="addmm gru_cell sigmoid tanh gru",
    ),
    "a number for each text": plant(
        "recurrent",
        (
            "    return (states * mask).sum(dim=1) / lengths[:, None]",
            (
                "    sums = (states * mask).sum(dim=1)\n"
                "    return torch.stack([row / length.item() for row, length in zip(sums, lengths)])"
            ),
        ),
        at="pooled",
        kinds="new more gone synchronises",
        operators="_local_scalar_dense item div stack",
    ),
    "fp64 states": plant(
        "recurrent",
        (
            "    return (states * mask).sum(dim=1) / lengths[:, None]",
            (
                "    wide = states.double().repeat(1, 4, 1).view(BATCH, 4, LENGTH, WIDTH)\n"
                "    wide = torch.softmax(wide, dim=3)[:, 0]\n"
                "    return ((states + wide) * mask).sum(dim=1).float() / lengths[:, None]"
            ),
        ),
        at="pooled",
        kinds="new more other_shape",
        operators="_softmax repeat copy_ _to_copy clone add",
    ),
    "a queue that is fed slowly": plant(
        "loader",
        (
            "def fetch():\n",
            (
                "FED = queue.Queue(maxsize=1)\n\n\n"
                "def feed():\n    while True:\n        time.sleep(0.025)\n        FED.put(1)\n\n\n"
                "threading.Thread(target=feed, daemon=True).start()\n\n\n"
                "def fetch():\n    FED.get()\n"
            ),
        ),
        ("import threading\n", "import queue\nimport threading\n"),
        at="fetch",
        kinds="waits new",
        is_exact=False,
    ),
    "two sleeps": plant(
        "loader",
        ("    return torch.tensor(rows)", "    time.sleep(0.002)\n    return torch.tensor(rows)"),
        ("def log(loss):\n", "def log(loss):\n    time.sleep(0.005)\n"),
        at="log collate",
        kinds="waits new",
        is_exact=False,
        seconds={"collate": 0.002, "log": 0.005},
    ),
    "records checked in Python": plant(
        "loader",
        (
            "def collate(rows):\n",
            (
                "def check(rows):\n"
                "    return all(0 <= value <= 1 and value == value for row in rows for value in row)\n\n\n"
                "def collate(rows):\n    assert all(check(rows) for _ in range(4))\n"
            ),
        ),
        at="check check.<locals>.<genexpr> collate",
        kinds="calls",
    ),
    "a hook on each layer": plant(
        "recommender",
        helper(
            "def watch(module, given, made):\n"
            "    module.seen = [made.detach().abs().mean(), made.detach().std(), made.detach().max()]"
        ),
        (
            "    model = Model()\n",
            (
                "    model = Model()\n    for part in model.layers:\n"
                "        part.register_forward_hook(watch)\n"
            ),
        ),
        at="watch",
        kinds="new",
        operators="std mean abs max",
    ),
    "an embedding for each id": plant(
        "recommender",
        (
            "        return torch.cat([table(ids[i]) for i, table in enumerate(self.tables)], dim=1)",
            (
                "        sums = []\n"
                "        for i, table in enumerate(self.tables):\n"
                "            rows = [functional.embedding(part, table.weight) for part in ids[i].unbind(1)]\n"
                "            sums.append(torch.stack(rows).sum(dim=0))\n"
                "        return torch.cat(sums, dim=1)"
            ),
        ),
        at="Tables.forward",
        kinds="new gone more",
        operators="embedding embedding_dense_backward stack _embedding_bag add_",
    ),
    "more rows in each table": plant(
        "recommender",
        (
            "TABLES, ROWS, WIDTH, BATCH, PER_SAMPLE = 6, 400",
            "TABLES, ROWS, WIDTH, BATCH, PER_SAMPLE = 6, 20000",
        ),
        at="Tables.forward update",
        kinds="other_shape",
        operators="_foreach_addcdiv_ _foreach_sqrt _foreach_addcmul_ sqrt addcmul_ addcdiv_ "
        "embedding_dense_backward _embedding_bag_dense_backward add_ zero_ index_add_ zeros",
    ),
    "no cache": plant(
        "decoder",
        (
            "        token = choose(decoder(token, PROMPT + place))",
            (
                "        prompt = torch.cat([prompt, token], dim=1)\n"
                "        token = choose(decoder(prompt, 0))"
            ),
        ),
        at="Layer.forward Decoder.forward generate Layer.remember",
        kinds="other_shape new more",
        operators="addmm _scaled_dot_product_flash_attention_for_cpu copy_ embedding",
    ),
    "a cache that is copied": plant(
        "decoder",
        (
            "        return self.keys[:, :, :end], self.values[:, :, :end]",
            (
                "        return self.keys.repeat(1, 1, 4, 1)[:, :, :end].clone(), "
                "self.values.repeat(1, 1, 4, 1)[:, :, :end].clone()"
            ),
        ),
        at="Layer.remember",
        kinds="new more",
        operators="repeat copy_ clone",
    ),
    "another interpolation": plant(
        "autoencoder",
        (
            'functional.relu(self.first(functional.interpolate(x, scale_factor=2, mode="nearest")))',
            'functional.relu(self.first(functional.interpolate(x, scale_factor=2, mode="bicubic")))',
        ),
        at="Decoder.forward",
        kinds="new gone fewer",
        operators="upsample_bicubic2d upsample_bicubic2d_backward",
    ),
    "results written as text": plant(
        "autoencoder",
        helper("def report(batch):\n    return json.dumps(batch[:, 0].tolist())"),
        (
            "        loss_of(model, batch).backward()\n",
            "        loss_of(model, batch).backward()\n        report(batch)\n",
        ),
        at="report",
        kinds="new more calls",
        operators="select _local_scalar_dense",
    ),
    "images that are kept twice": plant(
        "autoencoder",
        (
            "    return images.flip(dims=(3,)) * 0.9 + 0.05",
            (
                "    many = images.repeat(64, 1, 1, 1).flip(dims=(3,)) * 0.9\n"
                "    return many[:BATCH] + 0.05"
            ),
        ),
        at="augmented",
        kinds="new more other_shape",
        operators="repeat flip mul copy_",
    ),
}
