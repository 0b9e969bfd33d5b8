"""JSON, PyTorch HUD and TensorBoard: numbers of which the file says no more than a name."""

import json
import sys
from pathlib import Path

import pytest

from ci_perf.features.formats import generic
from ci_perf.measuring.own_metrics import OwnMetrics
from ci_perf.measuring.written_numbers import WrittenNumbers

FILES = Path(__file__).parent / "files"


def read_json(tmp_path, text):
    path = tmp_path / "results.json"
    path.write_text(text)
    return {name: each.values for name, each in generic.read_json(path).items()}


def test_every_number_of_a_document_has_its_path(tmp_path):
    document = {
        "loss": 0.25,
        "runs": [{"step time": 2, "ok": True, "note": "x"}, {"step time": 3, "left": None}],
        "times": [1, 2.5],
        "mixed": [1, "x"],
        "none": [],
    }

    assert read_json(tmp_path, json.dumps(document)) == {
        "loss": (0.25,),
        "runs_0_.step_time": (2.0,),
        "runs_1_.step_time": (3.0,),
        "times": (1.0, 2.5),
        "mixed_0_": (1.0,),
    }


@pytest.mark.parametrize(("text", "values"), [("3", (3.0,)), ("[1, 2]", (1.0, 2.0))])
def test_a_document_without_keys_is_one_value(text, values, tmp_path):
    assert read_json(tmp_path, text) == {"value": values}


def test_what_is_no_finite_number_is_left_out(tmp_path):
    text = f'{{"a": NaN, "b": Infinity, "c": 1e999, "d": 1{"0" * 400}, "e": 1}}'

    assert read_json(tmp_path, text) == {"e": (1.0,)}


def test_paths_of_one_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="found 'a b' and 'a_b'"):
        read_json(tmp_path, '{"a b": 1, "a_b": 2}')


def test_a_document_of_too_many_levels_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected JSON"):
        read_json(tmp_path, '{"a":' * 5000 + "1" + "}" * 5000)


def test_hud_records_have_a_unit_if_their_names_say_it():
    assert generic.read_hud(FILES / "hud.json") == {
        "pr_time_benchmarks.add_loop_eager.eager.compile_time_instruction_count": WrittenNumbers(
            values=(3086359081.0,)
        ),
        "TorchInductor.inference.bfloat16.bert.load_time_ms_": WrittenNumbers(
            values=(0.25, 0.26), kind="time"
        ),
        "vLLM_benchmark.llama.p99_ttft_ms": WrittenNumbers(values=(0.09,), kind="tail"),
        "vLLM_benchmark.llama.std_ttft_ms": WrittenNumbers(values=(9.0,)),
        "vLLM_benchmark.llama.tokens_per_second": WrittenNumbers(values=(1200.0,), kind="rate"),
        "vLLM_benchmark.peak_memory_bytes": WrittenNumbers(values=(1024.0,), kind="bytes"),
    }


@pytest.mark.parametrize(
    ("metric", "kind", "value"),
    [
        ("latency_us", "time", 1e-6),
        ("latency_s", "time", 1.0),
        ("tokens/s", "rate", 1.0),
        ("token_per_sec", "rate", 1.0),
        ("speedup", None, 1.0),
        ("epochs", None, 1.0),
    ],
)
def test_the_unit_of_a_hud_metric_is_the_end_of_its_name(metric, kind, value, tmp_path):
    record = {
        "benchmark": {"name": "b"},
        "metric": {"name": metric, "benchmark_values": [1]},
    }
    path = tmp_path / "results.json"
    path.write_text(json.dumps([record]))

    assert [*generic.read_hud(path).values()] == [WrittenNumbers(values=(value,), kind=kind)]


def test_a_hud_record_without_values_is_refused(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(
        '[{"benchmark": {"name": "b"}, "metric": {"name": "m", "benchmark_values": []}}]'
    )

    with pytest.raises(ValueError, match=r"b\.m: expected benchmark_values, found none"):
        generic.read_hud(path)


def test_scalars_of_tensorboard_have_all_their_values():
    # `train/grad_norm` ends in NaN, and `config` is a text.
    assert generic.read_tensorboard(FILES / "tensorboard-2.21.0") == {
        "train_loss": WrittenNumbers(values=(2.0, 1.0)),
        "train_step_time_s": WrittenNumbers(values=(0.5, 0.25, 0.25)),
        "eval_loss": WrittenNumbers(values=(2.0, 1.5)),
    }


def test_a_folder_without_events_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected at least one benchmark, found none"):
        generic.read_tensorboard(tmp_path)


def test_without_tensorboard_its_package_is_named(tmp_path, monkeypatch):
    missing = "tensorboard.backend.event_processing.event_accumulator"
    monkeypatch.setitem(sys.modules, missing, None)

    with pytest.raises(ValueError, match="`pip install tensorboard`"):
        generic.read_tensorboard(tmp_path)


def test_a_table_finds_a_number_of_json_by_its_path(tmp_path):
    (tmp_path / "output").write_text('{"runs": [{"p50 ms": 7}], "all": [3, 5, 9]}')
    metrics = {
        "a_ms": {"kind": "time", "find": "runs[0].p50 ms"},
        "b_s": {"kind": "time", "find": "all"},
    }
    own = OwnMetrics("json", json.dumps(metrics))

    numbers = own.read_run([], tmp_path / "output", None)

    assert numbers == {"time.a_ms": 0.007, "time.b_s": 5.0}
