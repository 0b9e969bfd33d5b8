"""What each step of a proof shows, what its figures are, and what to do where it does not hold."""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepWords:
    """What a step shows where it holds, and the next step of a person where it does not.

    ``figures`` says what each figure is; a `*` stands for a part of its name, in both. A figure
    without a unit is one number ÷ another, or says that it is a plain number. A question is
    answered by yes (1) or no (0).
    """

    claim: str
    advice: str
    figures: Mapping[str, str]


WORDS: Mapping[str, StepWords] = {
    "events": StepWords(
        "CUDA events and the host's clock agree on how long a block takes.",
        "Look for other programs on this GPU (`ci-perf doctor`), update the driver, "
        "and prove again. Until it holds, do not trust device_s.",
        {
            "device_over_wall": "time by CUDA events ÷ time by the host's clock",
            "step": "time of a step",
        },
    ),
    "harness": StepWords(
        "Timing a block costs nothing beside a bare loop.",
        "Look for other programs on this machine (`ci-perf doctor`), and prove again."
        " If it still does not hold, a step takes another time in ci-perf than in "
        "your program.",
        {
            "timed_over_bare": "step timed by ci-perf ÷ step of a bare loop",
            "bare_step": "time of a step in a bare loop",
        },
    ),
    "clock_resolution": StepWords(
        "CPU time counts what a step computes, and nothing while it waits.",
        "Another program has taken CPU time, or the kernel counts it coarsely: "
        "measure on a quieter machine, or gate on step time only.",
        {
            "busy_cpu_over_wall": "CPU time ÷ wall time, computing",
            "idle_cpu_over_wall": "CPU time ÷ wall time, asleep",
            "tick": "smallest tick of the host's clock",
        },
    ),
    "known_kernel": StepWords(
        "A kernel that waits for a known number of clock cycles takes these cycles "
        "divided by the clock that NVML reads.",
        "The clock moves while it is read, or NVML and events disagree: lock the clocks "
        "(`nvidia-smi -lgc`) and update the driver. Until it holds, do not trust cycles or "
        "clocks.",
        {
            "kernel_over_clock": "time by events ÷ time of the cycles at NVML's clock",
            "doubled": "time of twice the cycles ÷ time of the cycles",
            "kernel": "time of the kernel",
            "sm_clock": "clock by NVML",
        },
    ),
    "one_wait": StepWords(
        "A block of steps waits for the GPU once before and once after, never within.",
        "Something makes each launch wait: unset CUDA_LAUNCH_BLOCKING, and look for debuggers"
        " and profilers that somebody has attached.",
        {
            "waits": "waits for the GPU in a block",
            "waits_within": "waits between the first and the last step of a block",
            "launches": "launches in a block",
        },
    ),
    "issue": StepWords(
        "host_overhead is near 0 where the GPU works and near 1 where it waits for the host.",
        "Do not read host_overhead on this machine; CUDA_LAUNCH_BLOCKING=1 makes "
        "every step look launch-bound.",
        {
            "device_bound": "host's share of a step that the GPU bounds",
            "launch_bound": "host's share of a step that launches bound",
            "with_item": "host's share of a step that waits in .item()",
        },
    ),
    "other_stream": StepWords(
        "Work on another stream counts for the host's clock, and for events only "
        "where the current stream waits for it.",
        "Gate on step time (the host's clock), never on device_s, for steps with several streams.",
        {
            "clock": "time by the host's clock ÷ time of the kernel",
            "events_alone": "time by events ÷ time of the kernel, nothing waiting for it",
            "events_joined": "time by events ÷ time of the kernel, the stream waiting for it",
            "kernel": "time of the kernel",
        },
    ),
    "allocator": StepWords(
        "The peaks are those of allocations whose sizes are known; an allocator that "
        "does not count leaves none instead of zero.",
        'Do not gate on device memory here; with `allocator = "backend:..."` go back '
        "to torch's own.",
        {
            "allocated": "peak of allocated memory ÷ what was allocated",
            "active": "peak of active memory ÷ what was allocated",
            "reserved": "peak of reserved memory ÷ what was allocated",
            "retries": "retries of the allocator",
            "out_of_memory": "times that memory ran out",
            "async_zeros": "peaks of cudaMallocAsync that are 0",
            "async_absent": "peaks that cudaMallocAsync does not count",
        },
    ),
    "nvml": StepWords(
        "NVML describes the GPU that torch computes on; what it tells of power, energy, memory and "
        "clocks is in the units that ci-perf reads.",
        "Where a name or an UUID differs, CUDA_VISIBLE_DEVICES or MIG names another GPU: pass"
        " one GPU by its UUID. For any other figure, update the driver and nvidia-ml-py, and "
        "do not trust power and clocks until it holds.",
        {
            "uuid_agrees": "same UUID by torch and NVML?",
            "name_agrees": "same name by torch and NVML?",
            "mig_agrees": "same answer about MIG by torch and NVML?",
            "devices": "GPUs that torch sees",
            "memory_over_torch": "memory by NVML ÷ memory by torch",
            "power": "power under load",
            "power_over_limit": "power under load ÷ power limit",
            "energy_over_power": "energy by the counter ÷ energy by power and time",
            "sm_clock": "clock under load",
            "clock_over_max": "clock under load ÷ highest clock",
            "absent": "fields that the driver does not tell",
        },
    ),
    "foreign_process": StepWords(
        "Another program on the GPU is noticed.",
        "Other programs cannot be noticed on this runner (isolated or virtual GPU): make sure"
        " by other means that nobody shares it.",
        {
            "memory_over_known": "memory that appeared ÷ what the other program took",
            "memory": "memory that appeared",
            "processes": "processes that appeared",
        },
    ),
    "out_of_memory": StepWords(
        "When memory runs out, torch says so, counts it, and the next steps run as before.",
        "A workload that runs out spoils the next ones: run each suite in a container of its own.",
        {
            "raised": "did torch raise its error?",
            "counted": "times that the allocator counted it",
            "left": "memory left allocated",
            "free_over_before": "free memory, after ÷ before",
            "after_over_before": "time of a step, after ÷ before",
        },
    ),
    "throughput": StepWords(
        "Autocast computes in bf16. Where the peak of a precision is known, large products reach a "
        "share of it that is below 1.",
        "A share above 1 says that the table of peaks is wrong for this GPU: please report "
        "it. A small share says that power or heat hold the clocks down: see canary_power. "
        "Where autocast falls short, this torch lacks fast bf16 kernels.",
        {
            "autocast_is_bf16": "does autocast compute in bf16?",
            "*_of_peak": "rate in * ÷ its peak",
            "fp32": "rate in fp32",
            "bf16": "rate in bf16",
            "fp16": "rate in fp16",
            "tf32": "rate in tf32",
            "autocast": "rate of fp32 matrices under autocast",
            "autocast_over_bf16": "rate under autocast ÷ rate in bf16",
        },
    ),
    "profiler": StepWords(
        "torch.profiler sees operators, and links what runs on a GPU to what launched it.",
        "`ci-perf explain` has no device times here: give CUPTI permission "
        "(NVreg_RestrictProfilingToAdminUsers=0), and detach every other profiler.",
        {
            "operators": "operators in the trace",
            "work": "kernels and copies in the trace",
            "linked": "share of the GPU's work that is linked to an operator",
            "busy_and_idle_over_span": "busy and idle time of the GPU ÷ its whole time",
        },
    ),
    "memory_snapshot": StepWords(
        "A snapshot of the allocator's history holds each allocation.",
        "`ci-perf explain --snapshot` has nothing to show with this torch: use another version.",
        {
            "known_allocations": "entries of the allocation that is known",
            "entries": "entries of the snapshot",
            "snapshot": "size of its file",
        },
    ),
    "numerics": StepWords(
        "A training step with fixed seeds leaves equal losses in two processes.",
        "Look whether cudnn.benchmark or an autotuner chooses kernels; else give each "
        "workload a reason (`varies`) or a tolerance.",
        {
            "losses_differ": "difference of two processes' losses ÷ the loss",
            "last_loss": "last loss, a plain number",
            "attention_differs": "difference of two gradients of attention ÷ the largest",
            "atomics_differ": "difference of two sums by atomic adds ÷ the largest",
        },
    ),
    "compile_caches": StepWords(
        "The first step of a compiled program is faster where the caches are filled.",
        "Cold and warm compile times mean nothing here: look whether something clears"
        " the caches or forbids their folder.",
        {
            "warm_over_cold": "first step with filled ÷ with empty caches",
            "steady_over_warm": "later step ÷ first step with filled caches",
            "cold": "first step with empty caches",
            "warm": "first step with filled caches",
        },
    ),
    "cuda_graphs": StepWords(
        "A captured graph computes the same numbers, and costs the host less.",
        "Graphs bring nothing on this driver: update it, and read host_overhead of "
        "such workloads with care.",
        {
            "differs": "largest difference of the results, a plain number",
            "issue_over_eager": "host's time for a replay ÷ for the step itself",
            "step_over_eager": "time of a replay ÷ of the step itself",
        },
    ),
    "canary_power": StepWords(
        "The canaries read the same before and after 15 s of load.",
        "The GPU heats up or meets its power limit: lock its clocks, cool it, or raise the "
        "limit of the canaries. Until then, checks will be degraded.",
        {
            "*_after_load": "canary *, after the load ÷ before",
            "random_over_ones": "product of random numbers ÷ product of ones",
        },
    ),
    "two_processes": StepWords(
        "A stopped process with a CUDA context does not slow the measured one; a running one does.",
        "Where a stopped process slows another one, keep pairs of launches on this GPU (never"
        " resident ones). Where a running one does not, MPS or MIG gives each a part of the "
        "GPU, and contention cannot be seen.",
        {
            "beside_stopped": "time of a step beside a stopped process ÷ alone",
            "beside_running": "time of a step beside a running process ÷ alone",
            "alone": "time of a step alone",
        },
    ),
    "monitor": StepWords(
        "The monitor that reads the machine does not slow what is timed.",
        "Lower monitor_hz in suite.toml, or give the machine another CPU.",
        {
            "excess": "what the monitor costs beyond 1 % and beyond chance",
            "on_over_off": "time of a step with the monitor ÷ without",
            "off_over_off": "time of a step without the monitor ÷ again without",
            "by_chance": "what launches without the monitor differ by",
            "launches": "launches of each kind",
        },
    ),
    "launch_seconds": StepWords(
        "A launch is short enough for the budget of a check to hold many pairs.",
        "Look which part is long: a slow disk makes imports slow, a busy machine "
        "makes all parts slow.",
        {
            "*_launch_s": "launch of *",
            "*_import_s": "* imports",
            "*_build_s": "* builds",
            "*_first_step_s": "* takes its first step",
            "*_fingerprint_s": "* leaves a fingerprint",
            "*_warmup_s": "* warms up",
            "*_timed_s": "* is timed",
            "*_memory_s": "memory of * is read",
            "*_counters_s": "counters of * are read",
            "*_rest_s": "* starts and ends",
        },
    ),
    "launch_noise": StepWords(
        "Launches of the same code agree well enough to find a small change.",
        "Run `ci-perf calibrate`: it tells the statistic and the limit that fit this machine."
        " Where sessions differ, accept a few at different times of day: the baselines then know.",
        {
            "median_detectable": "smallest change that 18 pairs find, median of the workloads",
            "session_ratio": "one session ÷ the other, of the workload that moved most",
            "workloads": "workloads launched",
            "spread_*": "launches of * differ by",
            "detectable_*": "smallest change of * that 18 pairs find",
        },
    ),
    "planted": StepWords(
        "A slow-down of known size is found, and an unchanged program raises no alarm.",
        "After few pairs, prove again with more --minutes. Else run "
        "`ci-perf calibrate --planted 3%`: it says which changes this machine shows.",
        {
            "false_alarms": "alarms for what has not changed",
            "found_*": "is a slow-down of * % found?",
            "measured_*": "slow-down measured where * % were planted",
            "pairs": "pairs of launches",
        },
    ),
    "resident_pair": StepWords(
        "Pairs of processes that are both alive differ at most twice as much as pairs of launches.",
        "Look for other programs, and for the memory that is left while both are alive.",
        {
            "resident_over_launch": "spread of resident pairs ÷ spread of pairs of launches",
            "resident_spread": "spread of pairs whose processes are both alive",
            "launch_spread": "spread of pairs of launches",
            "pairs": "pairs of each kind",
        },
    ),
}
# A proof of another version may have steps that this one does not know.
UNKNOWN = StepWords("This version of ci-perf does not know the step.", "", {})


def of_figure(step: str, figure: str) -> tuple[str, str] | None:
    """Return the words of a figure, and what their `*` stands for; `None` where there are none."""
    for pattern, words in WORDS.get(step, UNKNOWN).figures.items():
        before, star, after = pattern.partition("*")
        match = re.fullmatch(
            f"{re.escape(before)}{'(.+)' if star else ''}{re.escape(after)}", figure
        )
        if match:
            return words, match[1] if star else ""
    return None
