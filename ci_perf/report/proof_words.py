"""What each step of a proof shows, and what to do where it does not hold."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepWords:
    """What a step shows where it holds, and the next step of a person where it does not."""

    claim: str
    advice: str


WORDS: Mapping[str, StepWords] = {
    "events": StepWords(
        "CUDA events and the host's clock agree on how long a block takes.",
        "Look for other programs on this GPU (`ci-perf doctor`), update the driver, "
        "and prove again. Until it holds, do not trust device_s.",
    ),
    "harness": StepWords(
        "Timing a block costs nothing beside a bare loop.",
        "Look for other programs on this machine (`ci-perf doctor`), and prove again."
        " If it still does not hold, a step takes another time in ci-perf than in "
        "your program.",
    ),
    "clock_resolution": StepWords(
        "CPU time counts what a step computes, and nothing while it waits.",
        "Another program has taken CPU time, or the kernel counts it coarsely: "
        "measure on a quieter machine, or gate on step time only.",
    ),
    "known_kernel": StepWords(
        "A kernel that waits for a known number of clock cycles takes these cycles "
        "divided by the clock that NVML reads.",
        "The clock moves while it is read, or NVML and events disagree: lock the clocks "
        "(`nvidia-smi -lgc`) and update the driver. Until it holds, do not trust cycles or "
        "clocks.",
    ),
    "one_wait": StepWords(
        "A block of steps waits for the GPU once before and once after, never within.",
        "Something makes each launch wait: unset CUDA_LAUNCH_BLOCKING, and look for debuggers"
        " and profilers that somebody has attached.",
    ),
    "issue": StepWords(
        "host_overhead is near 0 where the GPU works and near 1 where it waits for the host.",
        "Do not read host_overhead on this machine; CUDA_LAUNCH_BLOCKING=1 makes "
        "every step look launch-bound.",
    ),
    "other_stream": StepWords(
        "Work on another stream counts for the host's clock, and for events only "
        "where the current stream waits for it.",
        "Gate on step time (the host's clock), never on device_s, for steps with several streams.",
    ),
    "allocator": StepWords(
        "The peaks are those of allocations whose sizes are known; an allocator that "
        "does not count leaves none instead of zero.",
        'Do not gate on device memory here; with `allocator = "backend:..."` go back '
        "to torch's own.",
    ),
    "nvml": StepWords(
        "NVML describes the GPU that torch computes on, in the units that ci-perf reads.",
        "Where a name or an UUID differs, CUDA_VISIBLE_DEVICES or MIG names another GPU: pass"
        " one GPU by its UUID. For any other figure, update the driver and nvidia-ml-py, and "
        "do not trust power and clocks until it holds.",
    ),
    "foreign_process": StepWords(
        "Another program on the GPU is noticed.",
        "Other programs cannot be noticed on this runner (isolated or virtual GPU): make sure"
        " by other means that nobody shares it.",
    ),
    "out_of_memory": StepWords(
        "When memory runs out, torch says so, counts it, and the next steps run as before.",
        "A workload that runs out spoils the next ones: run each suite in a container of its own.",
    ),
    "throughput": StepWords(
        "Large products reach a share of the peak that is below 1 in every precision,"
        " and autocast computes in the lower one.",
        "A share above 1 says that the table of peaks is wrong for this GPU: please report "
        "it. A small share says that power or heat hold the clocks down: see canary_power. "
        "Where autocast falls short, this torch lacks fast bf16 kernels.",
    ),
    "profiler": StepWords(
        "torch.profiler sees operators and kernels, and links kernels to what launched them.",
        "`ci-perf explain` has no device times here: give CUPTI permission "
        "(NVreg_RestrictProfilingToAdminUsers=0), and detach every other profiler.",
    ),
    "memory_snapshot": StepWords(
        "A snapshot of the allocator's history holds each allocation.",
        "`ci-perf explain --snapshot` has nothing to show with this torch: use another version.",
    ),
    "numerics": StepWords(
        "A training step with fixed seeds leaves equal losses in two processes.",
        "Look whether cudnn.benchmark or an autotuner chooses kernels; else give each "
        "workload a reason (`varies`) or a tolerance.",
    ),
    "compile_caches": StepWords(
        "The first step of a compiled program is faster where the caches are filled.",
        "Cold and warm compile times mean nothing here: look whether something clears"
        " the caches or forbids their folder.",
    ),
    "cuda_graphs": StepWords(
        "A captured graph computes the same numbers, and costs the host less.",
        "Graphs bring nothing on this driver: update it, and read host_overhead of "
        "such workloads with care.",
    ),
    "canary_power": StepWords(
        "The canaries read the same before and after 15 s of load.",
        "The GPU heats up or meets its power limit: lock its clocks, cool it, or raise the "
        "limit of the canaries. Until then, checks will be degraded.",
    ),
    "two_processes": StepWords(
        "A stopped process with a CUDA context does not slow the measured one; a running one does.",
        "Where a stopped process slows another one, keep pairs of launches on this GPU (never"
        " resident ones). Where a running one does not, MPS or MIG gives each a part of the "
        "GPU, and contention cannot be seen.",
    ),
    "monitor": StepWords(
        "The monitor that reads the machine does not slow what is timed.",
        "Lower monitor_hz in suite.toml, or give the machine another CPU.",
    ),
    "launch_seconds": StepWords(
        "A launch is short enough for the budget of a check to hold many pairs.",
        "Look which part is long: a slow disk makes imports slow, a busy machine "
        "makes all parts slow.",
    ),
    "launch_noise": StepWords(
        "Launches of the same code agree well enough to find a small change.",
        "Run `ci-perf calibrate`: it chooses the statistic and the preset that fit this machine."
        " Where sessions differ, accept a few at different times of day: the baselines then know.",
    ),
    "planted": StepWords(
        "A slow-down of known size is found, and an unchanged program raises no alarm.",
        "Run `ci-perf calibrate`, then `ci-perf qualify`: they say which changes this"
        " machine notices.",
    ),
    "resident_pair": StepWords(
        "Pairs of processes that are both alive differ no more than pairs of launches.",
        "Look for other programs, and for the memory that is left while both are alive.",
    ),
}
# A proof of another version may have steps that this one does not know.
UNKNOWN = StepWords("This version of ci-perf does not know the step.", "")
