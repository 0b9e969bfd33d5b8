// Run our pure tests under the CPython of pyodide: `node run.mjs ROOT SITE PACKAGES TESTS...`.
// ROOT is the repository, SITE holds compiled packages for pyodide, PACKAGES pure ones.
import { loadPyodide } from "pyodide";

const [root, site, packages, ...tests] = process.argv.slice(2);
const python = await loadPyodide();
for (const [place, folder] of Object.entries({ "/root": root, "/site": site, "/packages": packages })) {
  python.FS.mkdirTree(place);
  python.mountNodeFS(place, folder);
}
python.globals.set("tests", python.toPy(tests));
const code = await python.runPythonAsync(`
import os, sys
os.chdir("/root")
sys.dont_write_bytecode = True
sys.path[:0] = ["/root/tests/wasm", "/root", "/site"]
sys.path.append("/packages")
import run
run.main(list(tests))
`);
process.exit(code);
