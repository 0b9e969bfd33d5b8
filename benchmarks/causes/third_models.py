"""Causes of the third set in models that were made for it: see `third_set`."""

# ruff: noqa: E501  the texts of models are not wrapped

from collections.abc import Mapping
from typing import Final

from benchmarks.causes.planted import Planted, helper, plant

CAUSES_OF_NEW_MODELS: Final[Mapping[str, Planted]] = {
    # A recogniser of speech.
    "masks of time and frequency": plant(
        "speech",
        helper(
            "def masked(spectra):\n"
            "    spectra = spectra.clone()\n"
            "    for bands in [*spectra, *spectra]:\n"
            "        low = torch.randint(BANDS - 6, ()).item()\n"
            "        bands[low : low + 6] = 0\n"
            "        start = torch.randint(bands.shape[1] - 8, ()).item()\n"
            "        bands[:, start : start + 8] = 0\n"
            "    return spectra"
        ),
        (
            "self.first(centred(self.spectra(sounds))))",
            "self.first(masked(centred(self.spectra(sounds)))))",
        ),
        at="masked",
        kinds="new more synchronises calls",
    ),
    "spectra of one recording at a time": plant(
        "speech",
        (
            "        parts = torch.stft(sounds, WINDOW, HOP, window=self.window, return_complex=True)\n",
            (
                "        parts = torch.stack(\n"
                "            [\n"
                "                torch.stft(sound, WINDOW, HOP, window=self.window, return_complex=True)\n"
                "                for sound in sounds\n"
                "            ]\n"
                "        )\n"
            ),
        ),
        at="Spectra.powers Spectra.powers.<locals>.<listcomp>",
        kinds="new more other_shape",
    ),
    "wrong letters counted": plant(
        "speech",
        helper(
            "def distance(one, other):\n"
            "    before = list(range(len(other) + 1))\n"
            "    for row, letter in enumerate(one, 1):\n"
            "        line = [row]\n"
            "        for column, wanted in enumerate(other):\n"
            "            line.append(min(line[-1] + 1, before[column + 1] + 1, before[column] + (letter != wanted)))\n"
            "        before = line\n"
            "    return before[-1]\n\n\n"
            "def wrong(logs, letters):\n"
            "    heard = logs.detach().argmax(dim=2).t().tolist()\n"
            "    return sum(map(distance, heard, letters.tolist()))"
        ),
        (
            "        loss_of(logs, letters).backward()\n",
            "        wrong(logs, letters)\n        loss_of(logs, letters).backward()\n",
        ),
        at="distance wrong",
        kinds="slower new calls more",
    ),
    # Clouds of points.
    "neighbours looked for in each layer": plant(
        "points",
        ("x, parts, near = points, [], neighbours(points)", "x, parts = points, []"),
        ("            x = layer(x, near)\n", "            x = layer(x, neighbours(x))\n"),
        at="neighbours distances Classifier.forward",
        kinds="calls more other_shape",
    ),
    "distances of differences": plant(
        "points",
        (
            "    return torch.cdist(points, points)",
            "    return (points[:, :, None] - points[:, None]).square().sum(dim=3).sqrt()",
        ),
        at="distances",
        kinds="new gone more fewer other_shape",
    ),
    # A sampler of images.
    "guidance by a second call": plant(
        "sampler",
        (
            (
                "    kinds = torch.cat([kinds, torch.full_like(kinds, KINDS)])\n"
                "    toward, away = net(images.repeat(2, 1, 1, 1), time, kinds).chunk(2)\n"
            ),
            (
                "    toward = net(images, time, kinds)\n"
                "    away = net(images, time, torch.full_like(kinds, KINDS))\n"
            ),
        ),
        at="guided Net.forward Block.forward",
        kinds="calls more gone other_shape",
    ),
    "a stop that is listened for": plant(
        "sampler",
        helper("STOP = threading.Event()"),
        (
            "    for number in reversed(range(STEPS)):\n        images",
            (
                "    for number in reversed(range(STEPS)):\n"
                "        if STOP.wait(timeout=1e-4):\n"
                "            break\n"
                "        images"
            ),
        ),
        at="sampled",
        kinds="new calls",
    ),
    # Counts of words.
    "words with letters of all languages": plant(
        "words",
        (
            'WORD = re.compile(r"[a-z]+")',
            r"""WORD = re.compile(r"(?<![^\W\d_])[^\W\d_]+(?:['\-][^\W\d_]+)*(?![^\W\d_])", re.IGNORECASE)""",
        ),
        at="tokens",
        kinds="slower",
        is_exact=False,
    ),
    "accents taken off": plant(
        "words",
        helper(
            "def plain(text):\n"
            '    letters = unicodedata.normalize("NFD", text)\n'
            '    return "".join(letter for letter in letters if not unicodedata.combining(letter))'
        ),
        (
            "    return WORD.findall(text.lower())",
            "    return WORD.findall(plain(text.lower()))",
        ),
        at="plain plain.<locals>.<genexpr> tokens",
        kinds="slower new calls more",
    ),
    # Rows of a table.
    "rows with names": plant(
        "tabular",
        (
            "    return list(csv.reader(io.StringIO(text)))",
            "    return [list(row.values()) for row in csv.DictReader(io.StringIO(text), NAMES)]",
        ),
        at="parsed parsed.<locals>.<listcomp>",
        kinds="slower new gone calls more",
    ),
    "gaps filled with medians": plant(
        "tabular",
        ("np.nanmean(numbers, axis=0)", "np.nanmedian(numbers, axis=0)"),
        at="filled",
        kinds="slower new gone calls",
    ),
    "the name of the machine in the log": plant(
        "tabular",
        helper(
            "def machine():\n"
            '    return subprocess.run(["uname", "-n"], stdout=subprocess.PIPE, check=True).stdout'
        ),
        (
            "def log(loss):\n    return loss.detach() * 1.0",
            "def log(loss):\n    return machine(), loss.detach() * 1.0",
        ),
        at="machine",
        kinds="new calls slower",
    ),
    # Boxes of objects.
    "areas measured for each overlap": plant(
        "detector",
        helper(
            "def area(box):\n"
            "    _, top, left, bottom, right = box\n"
            "    return max(0.0, bottom - top) * max(0.0, right - left)"
        ),
        (
            (
                "    area = (bottom - top) * (right - left)\n"
                "    return both / (area + (other_bottom - other_top) * (other_right - other_left) - both)\n"
            ),
            "    return both / (area(one) + area(other) - both)\n",
        ),
        at="area overlap",
        kinds="slower new calls more",
    ),
    "masks as lengths of runs": plant(
        "detector",
        helper(
            "def runs(mask):\n"
            "    groups = itertools.groupby(mask.flatten().tolist())\n"
            "    return [(value, len(list(group))) for value, group in groups]"
        ),
        (
            "    return drawn(suppressed(boxes))",
            "    return runs(drawn(suppressed(boxes)))",
        ),
        at="runs runs.<locals>.<listcomp>",
        kinds="slower new calls more",
    ),
    # Two views of an image.
    "only the hardest of the others": plant(
        "contrast",
        (
            "    others = queries @ negatives.t()\n",
            "    others = (queries @ negatives.t()).topk(KEPT // 4, dim=1).values\n",
        ),
        at="loss_of",
        kinds="new other_shape",
    ),
    "losses kept with what made them": plant(
        "contrast",
        helper(
            "CHECKS = []\n\n\n"
            "def check(encoder, images, keys, negatives):\n"
            "    CHECKS.append(loss_of(encoder(images[:4]), keys[:4], negatives))"
        ),
        (
            "        queue.add(keys)\n\n    return",
            "        check(encoder, images, keys, queue.rows)\n        queue.add(keys)\n\n    return",
        ),
        at="check loss_of Encoder.forward",
        kinds="new calls more",
    ),
    # Weights of 8 bits.
    "inputs rounded to levels, too": plant(
        "quantised",
        (
            "        return functional.linear(x, self.weights())",
            (
                "        scales = x.abs().amax(dim=1, keepdim=True) / 127\n"
                "        levels = (x / scales).round().clamp(-128, 127)\n"
                "        return functional.linear(levels, self.weights()) * scales"
            ),
        ),
        at="Quantised.forward",
        kinds="new more",
    ),
    "requests through a socket": plant(
        "quantised",
        helper(
            "ASKING, ANSWERING = socket.socketpair()\n\n\n"
            "def serve():\n"
            "    while ANSWERING.recv(1):\n"
            "        time.sleep(4e-4)\n"
            "        ANSWERING.sendall(SENT)\n\n\n"
            "threading.Thread(target=serve, daemon=True).start()"
        ),
        (
            "    return bytearray(SENT)\n",
            (
                '    ASKING.sendall(b"?")\n'
                "    return bytearray(ASKING.recv(len(SENT), socket.MSG_WAITALL))\n"
            ),
        ),
        at="request",
        kinds="new calls",
    ),
    # Attention within windows.
    "a mask instead of windows": plant(
        "windows",
        helper(
            "PLACES = torch.arange(LENGTH) // WINDOW\nMASK = PLACES[:, None] == PLACES[None, :]"
        ),
        (
            "view(-1, WINDOW, 3, HEADS, WIDTH // HEADS)",
            "view(-1, LENGTH, 3, HEADS, WIDTH // HEADS)",
        ),
        (
            "scaled_dot_product_attention(query, key, value)",
            "scaled_dot_product_attention(query, key, value, MASK)",
        ),
        at="Attention.forward",
        kinds="other_shape new more",
    ),
}
