from ci_perf.launch import monitoring
from tests.runs import a_gpu_evidence, an_evidence


def test_beside_a_resident_process_its_partner_is_no_stranger():
    seen = an_evidence(a_gpu_evidence(processes=2, energy_j=500.0))

    (gpu,) = monitoring.without_partner(seen).gpus

    assert gpu.processes == 1
    assert (gpu.energy_j, gpu.absent) == (None, {"energy_j": "a resident pair shares the GPU"})


def test_beside_a_resident_process_a_third_one_is_still_seen():
    seen = an_evidence(a_gpu_evidence(processes=3))

    assert monitoring.without_partner(seen).gpus[0].processes == 2


def test_what_a_driver_does_not_count_stays_unknown():
    seen = an_evidence(a_gpu_evidence(processes=None))

    assert monitoring.without_partner(seen).gpus[0].processes is None


def test_what_was_seen_of_the_host_stands():
    seen = an_evidence()

    assert monitoring.without_partner(seen) == seen
