"""What an image needs of this machine: the interpreter that runs the tests, packages, a shell.

A root is a mapping from where a file is in an image to where it is here: a Path; or to what it is a
link to: a string. Everything lies where it lies on this machine, so that nothing inside a file must
be changed; packages alone lie where the interpreter looks for them in no virtual environment.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

# A virtual environment has only a link to it.
PYTHON = Path(sys.executable).resolve()

# As much of a shell as a person would miss in a container, or a RUN of a Dockerfile.
_TOOLS = (
    *("sh", "cat", "chmod", "chown", "cp", "date", "dd", "df", "echo", "env", "false", "grep"),
    *("head", "hostname", "id", "kill", "ln", "ls", "mkdir", "mv", "pwd", "readlink", "rm"),
    *("sed", "sleep", "stat", "tail", "test", "touch", "true", "uname", "wc"),
)
# Of the standard library: what no worker needs, and the marks of a machine's own package manager.
_NOT_OF_LIBRARY = re.compile(
    r"site-packages|dist-packages|tests?|idlelib|turtledemo|_?tkinter.*|ensurepip|config-.*"
    r"|EXTERNALLY-MANAGED|.*\.opt-[12]\.pyc"
)
# Of packages: headers, programs and tests; and of hundreds of models all but those of workloads/.
_NOT_OF_PACKAGES = re.compile(
    r"\.\./"
    r"|torch/(bin/(?!torch_shm_manager)|include/|share/|test/)"
    r"|(numpy|sympy|networkx|mpmath)/(.*/)?tests/"
    r"|transformers/models/(?!auto/|bert/|gpt2/|resnet/)[^/]*/"
)
# What ldd says: "NAME => PATH (ADDRESS)", and of the loader "PATH (ADDRESS)".
_SHARED = re.compile(r"(?:=>|^)\s+(/\S+) \(", re.MULTILINE)


def of_python(*distributions):
    """Return the root of this Python, a shell, these distributions and all that they require."""
    files = {str(PYTHON): PYTHON, **_library(), **_packages(distributions), **_tools()}
    files |= _shared(files)
    files["/usr/local/bin/python3"] = str(PYTHON)
    # The loader looks beside libc, and in the interpreter's folder only if somebody tells it to.
    ours = [at for at in files if Path(at).name.startswith("libpython")]
    beside = library_folder()
    return {f"{beside}/{Path(at).name}": at for at in ours} | files


def of_shell():
    """Return the root of a shell and its tools, a hundredth of the others."""
    files = _tools()
    return files | _shared(files)


def library_folder():
    """Return the folder of the C library, here and in an image."""
    shared = _shared({str(PYTHON): PYTHON})
    return next(Path(at).parent for at in shared if Path(at).name == "libc.so.6")


def find_site_packages():
    """Return the folder of packages in an image."""
    return _ask_the_interpreter("import site; print(site.getsitepackages()[0])")


def _library():
    found = {}
    for parent, folders, files in os.walk(sysconfig.get_path("stdlib")):
        folders[:] = [name for name in folders if not _NOT_OF_LIBRARY.fullmatch(name)]
        names = [name for name in files if not _NOT_OF_LIBRARY.fullmatch(name)]
        found |= {f"{parent}/{name}": Path(parent, name) for name in names}
    return found


def _packages(names):
    target = find_site_packages()
    return {
        f"{target}/{file}": Path(file.locate())
        for distribution in _with_requirements(names)
        for file in distribution.files or ()
        if not _NOT_OF_PACKAGES.match(str(file)) and file.locate().is_file()
    }


def _ask_the_interpreter(source):
    return subprocess.run(
        [PYTHON, "-I", "-c", source], check=True, capture_output=True, text=True
    ).stdout.strip()


def _with_requirements(names):
    found, waiting = {}, list(names)
    while waiting:
        if (name := waiting.pop()) in found:
            continue
        found[name] = metadata.distribution(name)
        required = map(Requirement, found[name].requires or ())
        waiting += [
            one.name for one in required if not one.marker or one.marker.evaluate({"extra": ""})
        ]
    return found.values()


def _tools():
    paths = {name: shutil.which(name) for name in _TOOLS}
    return {f"/bin/{name}": Path(path).resolve() for name, path in paths.items() if path}


def _shared(files):
    """Return the libraries of the machine that these files are linked with."""
    linked = [source for at, source in files.items() if "/bin/" in at or ".so" in source.name]
    said = subprocess.run(
        ["ldd", *linked], check=False, capture_output=True, text=True
    ).stdout  # fails when one of them is no program
    own = Path(sys.prefix).resolve()
    return {
        at: Path(at).resolve()
        for at in _SHARED.findall(said)
        if at not in files and not Path(at).is_relative_to(own)
    }
