"""Wheels made by hand, and an index that serves wheels on this machine only."""

import base64
import contextlib
import functools
import hashlib
import http.server
import re
import threading
import zipfile


def make(folder, name, version, requires=(), modules=None):
    """Write the wheel of a package; return its path."""
    wheel = folder / f"{_module(name)}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in contents(name, version, requires, modules).items():
            archive.writestr(path, text)
    return wheel


def contents(name, version, requires=(), modules=None):
    """Return the files of an installed package; `modules` are texts of modules in it, by name."""
    info = f"{_module(name)}-{version}.dist-info"
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    metadata += [f"Requires-Dist: {requirement}" for requirement in requires]
    first = "".join(f"from . import {module}\n" for module in modules or ())
    texts = {
        f"{_module(name)}/__init__.py": f"{first}__version__ = {version!r}\n",
        **{f"{_module(name)}/{module}.py": text for module, text in (modules or {}).items()},
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in texts.items()]
    return texts | {f"{info}/RECORD": "\n".join([*record, f"{info}/RECORD,,"]) + "\n"}


def locked(wheel):
    """Return the line of a lock that names this wheel."""
    name, version = wheel.name.split("-")[:2]
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


@contextlib.contextmanager
def served(wheels, folder):
    """Serve wheels as an index does, from a folder of its own; give its address."""
    for wheel in wheels:
        project = folder / "simple" / re.sub(r"[-_.]+", "-", wheel.name.split("-")[0]).lower()
        project.mkdir(parents=True, exist_ok=True)
        (project / wheel.name).symlink_to(wheel)
    handler = functools.partial(_Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple/"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def _module(name):
    return name.replace("-", "_")


def _digest(text):
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
