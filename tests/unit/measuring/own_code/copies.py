"""Packages that lie beyond the checkout that a launch measures."""

import json

from ci_perf.measuring import own_code
from tests import launches


def write(file, text=""):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def installed(site, *files, origin=None, name="my_model"):
    """Write what pip notes of a package: that of an index, or of a folder of this machine."""
    metadata = site / f"{name}-0.1.dist-info"
    write(metadata / "RECORD", "".join(f"{file},sha256=x,1\n" for file in files))
    if origin is not None:
        write(metadata / "direct_url.json", json.dumps({"url": origin.as_uri(), "dir_info": {}}))


def a_task(root, foreign_root=None, **more):
    foreign = str(foreign_root or "")
    file = root / "workloads/it.py"
    return launches.a_task(file, root=root, data_dir="/d", foreign_root=foreign, **more)


def refusal(root, foreign_root=None, **more):
    """Return why a launch is refused, "" where it is not."""
    return refusal_of(a_task(root, foreign_root, **more))


def refusal_of(task):
    try:
        own_code.check(task)
    except own_code.ForeignCodeError as error:
        return str(error)
    return ""
