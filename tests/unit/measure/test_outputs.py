import subprocess
import sys

from ci_perf.measure.outputs import TAIL_BYTES, Outputs


def speak(path, source):
    """A real process whose stdout and stderr both go to a path."""
    with path.open("w") as out, path.open("w") as err:
        subprocess.run([sys.executable, "-c", source], stdout=out, stderr=err, check=False)


def test_each_process_has_its_own_last_words(tmp_path):
    with Outputs(tmp_path, 2) as outputs:
        speak(outputs.paths[0], "print('from the first')")
        speak(outputs.paths[1], "print('from the second')")
        tails = outputs.tail(0), outputs.tail(1)

    assert tails == ("from the first\n", "from the second\n")


def test_both_streams_stay_in_the_order_of_their_words(tmp_path):
    source = "import os\nos.write(1, b'one ')\nos.write(2, b'two ')\nos.write(1, b'three')"

    with Outputs(tmp_path, 1) as outputs:
        speak(outputs.paths[0], source)
        tail = outputs.tail(0)

    assert tail == "one two three"


def test_of_a_flood_only_the_end_is_kept(tmp_path):
    source = "for n in range(100_000): print('a line of a flood', n)"

    with Outputs(tmp_path, 1) as outputs:
        speak(outputs.paths[0], source)
        tail = outputs.tail(0)

    assert tail.endswith(" 99999\n")
    assert len(tail) == TAIL_BYTES


def test_who_says_nothing_has_no_last_words(tmp_path):
    with Outputs(tmp_path, 1) as outputs:
        said = outputs.tail(0), outputs.spoken_at(0)

    assert said == ("", 0.0)
