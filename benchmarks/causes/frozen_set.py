"""Causes that were planted when the rules no longer changed, by one who had not read the rules.

What is right of each was written down before it was launched first.
"""

# ruff: noqa: E501  the texts of models are not wrapped

from collections.abc import Mapping
from typing import Final

from benchmarks.causes.planted import Planted, helper, plant

CAUSES: Final[Mapping[str, Planted]] = {
    # What reads and prepares data.
    "texts cut in each step": plant(
        "texts",
        ("padded(chosen(texts))", "padded([cut(text) for text in chosen(CORPUS)])"),
        at="cut",
        kinds="calls",
    ),
    "rows as long as the longest of all": plant(
        "texts",
        ("    length = max(len(row) for row in rows)\n", "    length = LONGEST\n"),
        at="padded Classifier.forward",
        kinds="other_shape",
        operators="convolution convolution_backward mkldnn_convolution amax embedding_dense_backward",
    ),
    "a report in JSON": plant(
        "texts",
        (
            "    del history[:-50]\n",
            "    del history[:-50]\n    json.dumps([*NUMBERS.items()] * 60, indent=1)\n",
        ),
        at="log",
        kinds="slower new more",
        is_exact=False,
    ),
    "more read than is needed": plant(
        "records",
        (
            "        return bytearray(stream.read(RECORD_BYTES))",
            "        return bytearray(stream.read(12 * RECORD_BYTES)[:RECORD_BYTES])",
        ),
        at="read",
        kinds="slower waits",
        is_exact=False,
    ),
    "records decoded twice": plant(
        "records",
        (
            "    image, label = decoded(read(file, place))\n    return cropped(image), label",
            "    record = read(file, place)\n    return cropped(decoded(record)[0]), decoded(record)[1]",
        ),
        at="decoded",
        kinds="more calls",
    ),
    "a copy of each crop": plant(
        "records",
        (
            "    return image[:, 4 : 4 + CROP, 4 : 4 + CROP]",
            "    return image[:, 4 : 4 + CROP, 4 : 4 + CROP].contiguous()",
        ),
        at="cropped",
        kinds="new",
        operators="clone contiguous copy_",
    ),
    "images converted one by one": plant(
        "records",
        (
            "    return torch.stack(images).float() / 255, torch.tensor(labels)",
            (
                "    images = [image.float() / 255 for image in images]\n"
                "    return torch.stack(images), torch.tensor(labels)"
            ),
        ),
        at="collate collate.<locals>.<listcomp>",
        kinds="more new other_shape",
        operators="_to_copy to copy_ div",
    ),
    "no workers": plant(
        "pipeline",
        (
            "BATCH, SHAPE, WORKERS = 192, 32, (3, 32, 32), 1",
            "BATCH, SHAPE, WORKERS = 192, 32, (3, 32, 32), 0",
        ),
        at="Cifar10.__getitem__ read_record augment normalize waited_for",
        kinds="calls new more",
        operators="pad constant_pad_nd randint random_ flip sub div stack cat _to_copy copy_ fill_",
    ),
    "a slower transform in a worker": plant(
        "pipeline",
        (
            "    return (pixels.float() / 255 - MEAN) / DEVIATION",
            (
                "    smooth = functional.avg_pool2d(pixels.float()[None], 5, 1, 2)[0]\n"
                "    return (smooth / 255 - MEAN) / DEVIATION"
            ),
        ),
        at="waited_for build.<locals>.step normalize",
        kinds="waits",
        is_exact=False,
    ),
    "records copied deeply": plant(
        "loader",
        ("import threading\n", "import copy\nimport threading\n"),
        ("for record in RECORDS]", "for record in copy.deepcopy(RECORDS[:16]) + RECORDS[16:]]"),
        at="fetch",
        kinds="slower new",
        is_exact=False,
    ),
    "an augmentation more": plant(
        "vision",
        (
            "    return framed.flip(3).float() / 255 - 0.5",
            (
                "    light = torch.rand(BATCH, 1, 1, 1) * 0.4 + 0.8\n"
                "    images = framed.flip(3).float() / 255 * light - 0.5\n"
                "    return images + 0.05 * torch.randn(images.shape)"
            ),
        ),
        at="augmented",
        kinds="new more",
        operators="normal_ randn mul add rand uniform_",
    ),
    # What the model computes.
    "the layout lost in each block": plant(
        "vision",
        (
            "functional.relu(self.norm(self.convolution(x)))",
            "functional.relu(self.norm(self.convolution(x).contiguous()))",
        ),
        at="Block.forward Net.forward",
        kinds="new more other_shape",
        operators="clone contiguous copy_ native_batch_norm native_batch_norm_backward "
        "max_pool2d_with_indices max_pool2d_with_indices_backward convolution_backward threshold_backward",
    ),
    "a graph break by a number": plant(
        "compiled",
        (
            "    return torch.sigmoid(x * scale)",
            (
                "    if x.abs().max().item() > 1e6:\n        x = x.clamp(-1e6, 1e6)\n"
                "    return torch.sigmoid(x * scale)"
            ),
        ),
        at="gated",
        kinds="new more synchronises breaks_graph",
        operators="_local_scalar_dense item abs max",
    ),
    "a graph break by a helper": plant(
        "compiled",
        helper("@torch.compiler.disable\ndef bounded(x):\n    return x.clamp(-1, 1)"),
        ("0.1 * x.clamp(-1, 1)", "0.1 * bounded(x)"),
        at="gated bounded",
        kinds="new gone calls breaks_graph",
        operators="clamp mul add sigmoid tanh",
    ),
    "fusion lost": plant(
        "compiled",
        ("@torch.compile\ndef gated", "def gated"),
        at="gated",
        kinds="slower new more breaks_graph",
        operators="mul add sigmoid tanh clamp",
        is_exact=False,
    ),
    "attention of another implementation": plant(
        "encoder",
        ("    vocab_size=1000,\n", '    vocab_size=1000,\n    attn_implementation="eager",\n'),
        at="encode",
        kinds="new gone more",
        operators="bmm matmul softmax _softmax _scaled_dot_product_flash_attention_for_cpu",
    ),
    "dropout in inference": plant(
        "encoder",
        ("BertModel(CONFIG).eval()", "BertModel(CONFIG).train()"),
        at="encode",
        kinds="new gone more",
        operators="native_dropout bernoulli_ dropout bmm matmul softmax _softmax mul",
    ),
    "rows padded to one length": plant(
        "encoder",
        (
            "    return [(tokens[::2, :half], None), (tokens[1::2], None)]",
            (
                "    mask = torch.ones_like(tokens)\n    mask[::2, half:] = 0\n"
                "    return [(tokens, mask)]"
            ),
        ),
        at="encode batches_of build.<locals>.step",
        kinds="other_shape new gone fewer more calls",
        operators="addmm gelu _scaled_dot_product_flash_attention_for_cpu native_layer_norm",
    ),
    "another optimizer": plant(
        "perceptron",
        (
            "torch.optim.SGD(model.parameters(), lr=0.01)",
            "torch.optim.AdamW(model.parameters(), lr=1e-3)",
        ),
        at="build.<locals>.step",
        kinds="new gone more",
        operators="_foreach_sqrt _foreach_addcdiv_ _foreach_addcmul_ _foreach_lerp_ _foreach_mul_ "
        "_foreach_div_ _foreach_add_ sqrt addcdiv_ addcmul_ lerp_ mul_ div_",
    ),
    "half precision on a CPU": plant(
        "perceptron",
        (
            "    logits = model(images)\n",
            (
                '    with torch.autocast("cpu", torch.bfloat16):\n        logits = model(images)\n'
                "    logits = logits.float()\n"
            ),
        ),
        at="loss_of",
        kinds="new more other_shape",
        operators="_to_copy to copy_ addmm mm",
    ),
    "an accuracy of each class": plant(
        "perceptron",
        helper(
            "def accuracies(logits, labels):\n"
            "    guesses, rights = logits.argmax(dim=1), []\n"
            "    for kind in range(CLASSES):\n"
            "        rights.append((guesses[labels == kind] == kind).float().sum().item())\n"
            "    return rights"
        ),
        (
            "        return loss.detach()\n",
            "        accuracies(result, labels)\n        return loss.detach()\n",
        ),
        at="accuracies",
        kinds="new more synchronises calls",
        operators="_local_scalar_dense item index eq nonzero sum argmax _to_copy",
    ),
    "batches that are kept": plant(
        "perceptron",
        helper("SEEN = []"),
        (
            "        images, labels = next(upcoming)\n",
            "        images, labels = next(upcoming)\n        images = images * 0.5\n        SEEN.append(images)\n",
        ),
        at="build.<locals>.forward_and_backward",
        kinds="grows",
        is_memory=True,
    ),
    "edges by kind in a loop": plant(
        "graphs",
        (
            "        return torch.zeros_like(x).index_add(0, target, self.message(x)[source])",
            (
                "        sums, messages = torch.zeros_like(x), self.message(x)\n"
                "        for kind in range(KINDS):\n"
                "            chosen = kinds == kind\n"
                "            sums = sums.index_add(0, target[chosen], messages[source[chosen]])\n"
                "        return sums"
            ),
        ),
        at="Layer.gathered",
        kinds="new more other_shape",
        operators="index nonzero eq index_add index_select",
    ),
    "a cache that never hits": plant(
        "graphs",
        ('    if "all" not in DEGREES:\n', "    if target not in DEGREES:\n"),
        ('        DEGREES["all"] = torch', "        DEGREES[target] = torch"),
        ('    return DEGREES["all"]', "    return DEGREES[target]"),
        at="degrees",
        kinds="new more",
        operators="index_add ones zeros clamp fill_",
    ),
    "a product in another order": plant(
        "graphs",
        (
            (
                '        mixed = torch.einsum("nd,de->ne", x, self.mixing)\n'
                '        return torch.einsum("ne,me->nm", mixed, self.items)'
            ),
            (
                '        items = torch.einsum("de,me->md", self.mixing, self.items)\n'
                '        return torch.einsum("nd,md->nm", x, items)'
            ),
        ),
        at="Matcher.forward",
        kinds="other_shape new gone",
        operators="bmm einsum",
    ),
    "more answers than are needed": plant(
        "graphs",
        ("scores.topk(5, dim=1)", "scores.topk(12, dim=1)"),
        at="best",
        kinds="other_shape",
        operators="topk",
    ),
    "a cache that grows by joining": plant(
        "decoder",
        (
            (
                "        end = at + key.shape[2]\n"
                "        self.keys[:, :, at:end] = key\n"
                "        self.values[:, :, at:end] = value\n"
                "        return self.keys[:, :, :end], self.values[:, :, :end]"
            ),
            (
                "        if at:\n"
                "            key = torch.cat([self.keys, key], dim=2)\n"
                "            value = torch.cat([self.values, value], dim=2)\n"
                "        self.keys, self.values = key, value\n"
                "        return key, value"
            ),
        ),
        at="Layer.remember Layer.forward",
        kinds="new gone other_shape",
        operators="cat copy_ slice",
    ),
    "a mask made in each layer": plant(
        "decoder",
        (
            "        y = functional.scaled_dot_product_attention(query, keys, values)",
            (
                "        mask = torch.ones(x.shape[1], keys.shape[2], dtype=torch.bool).tril(at)\n"
                "        y = functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)"
            ),
        ),
        at="Layer.forward",
        kinds="new more other_shape",
        operators="ones tril fill_ _scaled_dot_product_flash_attention_for_cpu masked_fill_ where",
    ),
    "a sample instead of the best": plant(
        "decoder",
        (
            "    return logits.argmax(dim=2)",
            "    return torch.multinomial(torch.softmax(logits[:, 0] / 0.8, dim=1), 1)",
        ),
        at="choose",
        kinds="new gone",
        operators="multinomial _softmax softmax div argmax exponential_",
    ),
    "parts made contiguous": plant(
        "transformer",
        ("parts.permute(2, 0, 3, 1, 4)", "parts.permute(2, 0, 3, 1, 4).contiguous()"),
        at="Attention.forward",
        kinds="new more other_shape",
        operators="clone contiguous copy_",
    ),
    "ids that are checked": plant(
        "recommender",
        (
            "        return torch.cat([table(ids[i])",
            (
                "        for i in range(TABLES):\n"
                "            assert 0 <= int(ids[i].min()) and int(ids[i].max()) < ROWS\n"
                "        return torch.cat([table(ids[i])"
            ),
        ),
        at="Tables.forward",
        kinds="new more synchronises",
        operators="_local_scalar_dense item min max select",
    ),
    "a subclass of tensors": plant(
        "recurrent",
        helper(
            "class Named(torch.Tensor):\n"
            "    @classmethod\n"
            "    def __torch_function__(cls, function, types, args=(), kwargs=None):\n"
            "        return super().__torch_function__(function, types, args, kwargs or {})"
        ),
        ("best(reader(text, lengths))", "best(reader(text.as_subclass(Named), lengths))"),
        at="Named.__torch_function__",
        kinds="calls new more",
    ),
    "long doubles in the custom operator": plant(
        "kernels",
        ("    work = values.numpy().copy()\n", '    work = values.numpy().astype("longdouble")\n'),
        (
            "    return torch.from_numpy(work)",
            '    return torch.from_numpy(work.astype("float32"))',
        ),
        at="smooth build.<locals>.step",
        kinds="slower new",
        operators="planted::smooth",
        is_exact=False,
    ),
    "a gallery normalised in each search": plant(
        "search",
        (
            "        return queries @ self.gallery.t()",
            "        return queries @ (self.gallery / self.gallery.norm(dim=1, keepdim=True)).t()",
        ),
        at="Index.similar",
        kinds="new more",
        operators="div linalg_vector_norm norm",
    ),
    "gradients where none are needed": plant(
        "images",
        ("        with torch.no_grad():\n", "        if True:\n"),
        at="Stage.forward Net.forward",
        kinds="holds_more",
        is_memory=True,
    ),
    # How it is trained.
    "a model run again in the backward pass": plant(
        "autoencoder",
        (
            "import torch\nfrom torch import nn",
            "import torch\nimport torch.utils.checkpoint\nfrom torch import nn",
        ),
        (
            "functional.mse_loss(model(images), images)",
            (
                "functional.mse_loss(\n"
                "        torch.utils.checkpoint.checkpoint(model, images, use_reentrant=False), images\n    )"
            ),
        ),
        at="Encoder.forward Decoder.forward",
        kinds="recomputed",
        operators="convolution mkldnn_convolution conv2d",
    ),
    "norms of gradients twice": plant(
        "vision",
        (
            "    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n",
            "    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n" * 2,
        ),
        at="update",
        kinds="more",
        operators="_foreach_norm _foreach_mul_ linalg_vector_norm mul_ stack",
    ),
    "two batches for one update": plant(
        "vision",
        (
            "        train(net, batch, labels)\n",
            (
                "        for few, kinds in zip(batch.chunk(2), labels.chunk(2)):\n"
                "            train(net, few, kinds)\n"
            ),
        ),
        at="train build.<locals>.step Net.forward Block.forward",
        kinds="other_shape more new calls",
        operators="convolution_backward native_batch_norm native_batch_norm_backward convolution "
        "mkldnn_convolution max_pool2d_with_indices add_",
    ),
    "an optimizer in each step": plant(
        "vision",
        (
            "        update(net, optimizer)\n",
            "        optimizer = make_optimizer(net)\n        update(net, optimizer)\n",
        ),
        at="make_optimizer update",
        kinds="new more calls",
        operators="zeros_like empty_like zero_ fill_ zeros",
    ),
    "a hook on each gradient": plant(
        "texts",
        helper("def bounded(gradient):\n    return gradient.nan_to_num().clamp(-1, 1)"),
        (
            "    model = Classifier()\n",
            (
                "    model = Classifier()\n    for weights in model.parameters():\n"
                "        weights.register_hook(bounded)\n"
            ),
        ),
        at="bounded",
        kinds="new calls",
        operators="nan_to_num clamp",
    ),
    # What happens beside the model.
    "a copy of the network in each step": plant(
        "rollouts",
        ("    return target\n", "    return copy.deepcopy(target)\n"),
        at="follow",
        kinds="new more",
        operators="clone copy_ empty_like",
    ),
    "weights that are averaged out of place": plant(
        "rollouts",
        ("            old.lerp_(new, 0.01)\n", "            old.copy_(old * 0.99 + new * 0.01)\n"),
        at="follow",
        kinds="new gone",
        operators="mul add copy_ lerp_",
    ),
    "memories that are pickled": plant(
        "rollouts",
        helper(
            "def saved(states, rewards):\n    return pickle.dumps((states.clone(), rewards.clone()))"
        ),
        (
            "        return self.states[places], self.rewards[places]",
            (
                "        saved(self.states[places], self.rewards[places])\n"
                "        return self.states[places], self.rewards[places]"
            ),
        ),
        at="saved Memory.sample",
        kinds="new more calls",
    ),
    "a lock that a thread holds": plant(
        "rollouts",
        (
            "        with LOCK:\n",
            "        if self.at % (TURNS * AGENTS) == AGENTS:\n            ASKED.set()\n        with LOCK:\n",
        ),
        helper(
            "ASKED = threading.Event()\n\n\n"
            "def save():\n    while True:\n        ASKED.wait()\n        ASKED.clear()\n"
            "        with LOCK:\n            time.sleep(0.002)\n\n\n"
            "threading.Thread(target=save, daemon=True).start()"
        ),
        at="Memory.add",
        kinds="waits",
        is_exact=False,
    ),
}
