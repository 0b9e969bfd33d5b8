"""The sizes of BERT that the workloads know, by name; weights are random, nothing is downloaded."""

from typing import Literal

from transformers import BertConfig

Size = Literal["tiny", "base"]
CONFIGS = {
    "tiny": BertConfig(
        vocab_size=1000,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=512,
    ),
    "base": BertConfig(),
}
