"""Read what other benchmarks write: numbers of a load client, or of a tool of benchmarks."""

from ci_perf.hooks import Feature

_HERE = "ci_perf.features.formats"

FEATURE = Feature(
    formats={
        "json": f"{_HERE}.generic:read_json",
        "hud": f"{_HERE}.generic:read_hud",
        "tensorboard": f"{_HERE}.generic:read_tensorboard",
        "pytest-benchmark": f"{_HERE}.benchmarks:read_pytest_benchmark",
        "asv": f"{_HERE}.benchmarks:read_asv",
        "nvbench": f"{_HERE}.benchmarks:read_nvbench",
        "google-benchmark": f"{_HERE}.benchmarks:read_google_benchmark",
        "hyperfine": f"{_HERE}.benchmarks:read_hyperfine",
        "pyperf": f"{_HERE}.benchmarks:read_pyperf",
        "torch": f"{_HERE}.benchmarks:read_torch_benchmark",
        "triton": f"{_HERE}.benchmarks:read_triton",
        "vllm": f"{_HERE}.load_clients:read_vllm",
        "sglang": f"{_HERE}.load_clients:read_sglang",
        "guidellm": f"{_HERE}.load_clients:read_guidellm",
        "aiperf": f"{_HERE}.load_clients:read_aiperf",
    }
)
