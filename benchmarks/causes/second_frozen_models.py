"""Causes of the second frozen set in models that were made for it: see `second_frozen_set`."""

# ruff: noqa: E501  the texts of models are not wrapped

from collections.abc import Mapping
from typing import Final

from benchmarks.causes.planted import Planted, helper, plant

CAUSES_OF_NEW_MODELS: Final[Mapping[str, Planted]] = {
    # A U-Net that takes noise out of images.
    "a schedule of noise made in a loop": plant(
        "diffusion",
        (
            "        return torch.cumprod(1 - self.rates, dim=0)",
            (
                "        product, every = torch.ones(()), []\n"
                "        for rate in self.rates:\n"
                "            product = product * (1 - rate)\n"
                "            every.append(product)\n"
                "        return torch.stack(every)"
            ),
        ),
        (
            "        kept = self.kept[times][:, None, None, None]",
            "        kept = self.products()[times][:, None, None, None]",
        ),
        at="Schedule.products",
        kinds="new more calls",
        operators="mul rsub stack unbind cat",
    ),
    "a sample logged in each step": plant(
        "diffusion",
        (
            "    return loss.detach() * 1.0",
            (
                "    with torch.no_grad():\n"
                "        image = net(torch.randn(2, 3, SIZE, SIZE), torch.full((2,), TIMES - 1))\n"
                "    return loss.detach() * 1.0, image"
            ),
        ),
        at="log UNet.forward Residual.forward Attention.forward TimeEmbedding.forward UNet.upsampled",
        kinds="more new calls other_shape",
        operators="convolution mkldnn_convolution native_group_norm silu addmm randn normal_ "
        "_scaled_dot_product_flash_attention_for_cpu",
    ),
    "features that are kept for a picture": plant(
        "diffusion",
        helper("FEATURES = []"),
        (
            "        skip = self.attention(self.first(images))\n",
            (
                "        skip = self.attention(self.first(images))\n"
                "        FEATURES.append(skip.detach())\n"
            ),
        ),
        at="UNet.forward Attention.forward",
        kinds="grows",
        is_memory=True,
    ),
    # A mixture of experts.
    "tokens of each expert counted one by one": plant(
        "router",
        (
            "    return chosen.flatten().bincount(minlength=EXPERTS).tolist()",
            "    return [(chosen == expert).any(dim=1).sum().item() for expert in range(EXPERTS)]",
        ),
        at="loads loads.<locals>.<listcomp>",
        kinds="new gone more synchronises",
        operators="_local_scalar_dense item eq any sum",
    ),
    "three experts for each token": plant(
        "router",
        (
            "HIDDEN, EXPERTS, CHOSEN, LAYERS = 768, 64, 128, 12, 2, 3",
            "HIDDEN, EXPERTS, CHOSEN, LAYERS = 768, 64, 128, 12, 3, 3",
        ),
        at="Expert.forward Mixture.dispatched",
        kinds="other_shape",
        operators="addmm silu index mul index_add cat sort",
    ),
    "a router in double precision": plant(
        "router",
        (
            "        weights, chosen = torch.softmax(self.gate(x), dim=1).topk(CHOSEN, dim=1)\n",
            (
                "        logits = x.double() @ self.gate.weight.double().t()\n"
                "        weights, chosen = torch.softmax(logits, dim=1).float().topk(CHOSEN, dim=1)\n"
            ),
        ),
        at="Router.forward",
        kinds="new more other_shape",
        operators="_to_copy to copy_ mm matmul linear _softmax softmax",
    ),
    "experts that look for their tokens": plant(
        "router",
        (
            (
                "        order = chosen.flatten().argsort(stable=True)\n"
                "        tokens = order // CHOSEN\n"
                "        parts = x[tokens].split(loads(chosen))\n"
                "        y = torch.cat([expert(part) for expert, part in zip(self.experts, parts)])\n"
                "        y = y * weights.flatten()[order][:, None]\n"
                "        return torch.zeros_like(x).index_add(0, tokens, y)\n"
            ),
            (
                "        y = torch.zeros_like(x)\n"
                "        for i, expert in enumerate(self.experts):\n"
                "            tokens, places = torch.where(chosen == i)\n"
                "            y[tokens] += expert(x[tokens]) * weights[tokens, places, None]\n"
                "        return y\n"
            ),
        ),
        at="Mixture.dispatched",
        kinds="new gone more other_shape",
        operators="nonzero eq index index_put_ _index_put_impl_ add_ mul where add",
    ),
    "weights of the router written as text": plant(
        "router",
        (
            "        return weights / weights.sum(dim=1, keepdim=True), chosen",
            (
                "        weights = weights / weights.sum(dim=1, keepdim=True)\n"
                '        self.text = " ".join(["{:.3f}".format(row[0]) for row in weights.tolist()])\n'
                "        return weights, chosen"
            ),
        ),
        at="Router.forward Router.forward.<locals>.<listcomp>",
        kinds="slower calls new more",
        is_exact=False,
    ),
    # A vision transformer.
    "positions made in Python in each step": plant(
        "patches",
        (
            (
                "    rates = torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(1e4) / WIDTH))\n"
                "    angles = torch.arange(SIDE * SIDE)[:, None] * rates\n"
                "    return torch.cat([angles.sin(), angles.cos()], dim=1)\n"
            ),
            (
                "    rows = []\n"
                "    for place in range(SIDE * SIDE):\n"
                "        angles = [place / 1e4 ** (2 * i / WIDTH) for i in range(WIDTH // 2)]\n"
                "        rows.append([math.sin(a) for a in angles] + [math.cos(a) for a in angles])\n"
                "    return torch.tensor(rows)\n"
            ),
        ),
        (
            "        return self.embed(patched(images)) + self.positions",
            "        return self.embed(patched(images)) + made_positions()",
        ),
        at="made_positions made_positions.<locals>.<listcomp>",
        kinds="calls new more",
    ),
    "patches cut in a loop": plant(
        "patches",
        (
            (
                "    parts = images.view(BATCH, 3, SIDE, PATCH, SIDE, PATCH).permute(0, 2, 4, 1, 3, 5)\n"
                "    return parts.reshape(BATCH, SIDE * SIDE, 3 * PATCH * PATCH)"
            ),
            (
                "    parts = []\n"
                "    for top in range(0, SIZE, PATCH):\n"
                "        for left in range(0, SIZE, PATCH):\n"
                "            part = images[:, :, top : top + PATCH, left : left + PATCH]\n"
                "            parts.append(part.reshape(BATCH, -1))\n"
                "    return torch.stack(parts, dim=1)"
            ),
        ),
        at="patched",
        kinds="new more other_shape",
        operators="stack cat clone copy_ slice reshape",
    ),
    "GELU by hand": plant(
        "patches",
        (
            "        return functional.gelu(x)",
            "        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))",
        ),
        at="Mlp.activated",
        kinds="new gone more",
        operators="tanh tanh_backward pow mul add gelu gelu_backward",
    ),
    "attention by einsum": plant(
        "patches",
        (
            "        return self.out(functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))",
            (
                "        query, key, value = heads\n"
                '        weights = torch.einsum("bhic,bhjc->bhij", query, key) / math.sqrt(WIDTH // HEADS)\n'
                '        y = torch.einsum("bhij,bhjc->bihc", weights.softmax(dim=-1), value)\n'
                "        return self.out(y.flatten(2))"
            ),
        ),
        at="Attention.forward",
        kinds="new gone more",
        operators="bmm einsum _softmax softmax _softmax_backward_data div clone copy_ "
        "_scaled_dot_product_flash_attention_for_cpu "
        "_scaled_dot_product_flash_attention_for_cpu_backward",
    ),
    "weights averaged one by one": plant(
        "patches",
        (
            "        torch._foreach_lerp_(list(averaged.parameters()), list(model.parameters()), 0.01)",
            (
                "        now, names = model.state_dict(), averaged.state_dict()\n"
                "        for name, value in names.items():\n"
                "            value.copy_(value * 0.99 + now[name] * 0.01)"
            ),
        ),
        at="follow",
        kinds="new gone more",
        operators="mul add copy_ detach _foreach_lerp_",
    ),
    "the greatest moments kept by the optimizer": plant(
        "patches",
        ("lr=1e-4, foreach=True)", "lr=1e-4, foreach=True, amsgrad=True)"),
        at="update",
        kinds="holds_more",
        is_memory=True,
    ),
    # An update of a policy.
    "a distribution that checks its numbers": plant(
        "policy",
        (
            (
                "    logs = functional.log_softmax(logits, dim=-1)\n"
                "    entropy = -(logs.exp() * logs).sum(dim=-1)\n"
                "    return logs.gather(-1, actions[..., None]).squeeze(-1), entropy"
            ),
            (
                "    chosen = torch.distributions.Categorical(logits=logits)\n"
                "    return chosen.log_prob(actions), chosen.entropy()"
            ),
        ),
        at="log_probabilities",
        kinds="new more gone synchronises",
        operators="logsumexp _softmax softmax clamp eq all _local_scalar_dense item sub ge le lt mul "
        "min max exp gather is_nonzero",
    ),
    "advantages of numbers of Python": plant(
        "policy",
        (
            (
                "        following, gained, every = torch.zeros(AGENTS), torch.zeros(AGENTS), []\n"
                "        for reward, value in zip(self.rewards.flip(0), self.values.flip(0)):\n"
                "            gained = reward + 0.99 * following - value + 0.94 * gained\n"
                "            following = value\n"
                "            every.append(gained)\n"
                "        return torch.stack(every).flip(0)"
            ),
            (
                "        every = torch.zeros(TURNS, AGENTS)\n"
                "        for agent in range(AGENTS):\n"
                "            following = gained = 0.0\n"
                "            for turn in reversed(range(TURNS)):\n"
                "                value = float(self.values[turn, agent])\n"
                "                error = float(self.rewards[turn, agent]) + 0.99 * following - value\n"
                "                gained, following = error + 0.94 * gained, value\n"
                "                every[turn, agent] = gained\n"
                "        return every"
            ),
        ),
        at="Rollout.advantages",
        kinds="new gone more synchronises",
        operators="_local_scalar_dense item select fill_ copy_",
    ),
    "the old policy asked for each part": plant(
        "policy",
        (
            "    logits, values = policy(states)\n    logs, entropy",
            (
                "    with torch.no_grad():\n"
                "        before, _ = log_probabilities(policy(states)[0], actions)\n"
                "    logits, values = policy(states)\n    logs, entropy"
            ),
        ),
        at="loss_of Policy.forward log_probabilities",
        kinds="more calls",
        operators="addmm tanh linear _log_softmax log_softmax exp mul sum gather",
    ),
}
