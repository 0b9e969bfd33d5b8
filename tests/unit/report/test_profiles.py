import msgspec

from ci_perf.model.process import BreakEven, GpuUse, Profile
from ci_perf.report import markdown, profiles, tables
from tests.comparisons import a_change, a_comparison
from tests.unit.report.rendered import Page

GIB = 2**30
EVIL = "|`<img>"


def a_profile(workload="resnet", **more):
    plain = Profile(workload=workload, step_time_s=0.04, items_per_step=8, item_unit="image")
    return msgspec.structs.replace(plain, **more)


def a_gpu(uuid="GPU-0", **more):
    plain = GpuUse(uuid=uuid, utilization=0.95, power_w=500.0, memory_peak_bytes=30 * GIB)
    return msgspec.structs.replace(plain, **more)


def a_break_even(steps=6001, gain_s=0.01):
    return BreakEven(
        eager="resnet.compile=eager", cache="empty", cost_s=60.0, gain_s=gain_s, steps=steps
    )


def shown(*found, rows=10):
    return tables.markdown(profiles.page(found, shown=rows))


def test_the_time_of_an_epoch_stands_beside_the_throughput():
    assert "| `resnet` | 200 images/s | 4 min 10 s |" in shown(a_profile(epoch_s=250.0))
    assert "| `resnet` | 200 images/s | 12.5 s |" in shown(a_profile(epoch_s=12.5))


def test_each_gpu_is_a_row():
    text = shown(a_profile(gpus=(a_gpu(), a_gpu("GPU-1", power_w=None))))

    assert "| `resnet` | `GPU-0` | 95.0 % | 500 W | 30.0 GiB |" in text
    assert "| `resnet` | `GPU-1` | 95.0 % | \N{EN DASH} | 30.0 GiB |" in text


def test_what_the_driver_did_not_tell_is_said_once_with_its_answer():
    absent = {"power_w": "Not Supported", "pcie": "Not Supported"}
    gpus = tuple(a_gpu(uuid, power_w=None, absent=absent) for uuid in ("GPU-0", "GPU-1"))

    text = shown(a_profile("a", gpus=gpus), a_profile("b", gpus=gpus))
    assert text.endswith("\n\nNo power of `GPU-0`, `GPU-1`: `Not Supported`\n")


def test_a_compiled_workload_says_what_it_costs_gains_and_when_that_pays():
    text = shown(a_profile(break_evens=(a_break_even(), a_break_even(None, -0.001))))

    minus = "\N{MINUS SIGN}"
    assert f"| cold | +60.0 s | {minus}10.0 ms | 6,001 steps | `resnet.compile=eager` |" in text
    assert "| cold | +60.0 s | +1.00 ms | not faster | `resnet.compile=eager` |" in text


def test_the_report_has_a_fold_of_it_only_where_something_is_known():
    plain = a_comparison(a_change("resnet"), profiles=(a_profile(),))
    known = a_comparison(a_change("resnet"), profiles=(a_profile(epoch_s=250.0, gpus=(a_gpu(),)),))

    assert "More about the head" not in markdown.render(plain)
    assert "<summary>More about the head: time of an epoch, GPUs</summary>" in markdown.render(
        known
    )


def test_many_rows_are_cut_and_counted():
    text = shown(*(a_profile(f"w{n}", epoch_s=1.0) for n in range(30)), rows=3)

    assert "Time of an epoch (3 of 30 rows):" in text
    assert text.count("images/s") == 3


def test_what_a_driver_says_commands_nothing():
    page = Page(shown(a_profile(gpus=(a_gpu(power_w=None, absent={"power_w": EVIL}),))))

    assert "img" not in page.tags
    assert any("|" in text for text in page.code)
