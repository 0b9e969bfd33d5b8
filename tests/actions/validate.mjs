// Says what GitHub's own language service thinks of the files that are named:
// one JSON array of {file, line, severity, message} to stdout.
import { readFileSync } from "node:fs";
import { register } from "node:module";
import { basename } from "node:path";

register("./json_modules.mjs", import.meta.url);
const { validate } = await import("@actions/languageservice");
const { TextDocument } = await import("vscode-languageserver-textdocument");

// What a file is follows from where it lies; it remembers a file by its address.
function uri(file, index) {
  const isAction = basename(file) === "action.yml";
  return `file:///${index}/${isAction ? "action.yml" : `.github/workflows/${basename(file)}`}`;
}

const found = [];
for (const [index, file] of process.argv.slice(2).entries()) {
  const document = TextDocument.create(uri(file, index), "yaml", 1, readFileSync(file, "utf8"));
  for (const { range, severity, message } of await validate(document, {})) {
    found.push({ file, line: range.start.line + 1, severity, message });
  }
}
console.log(JSON.stringify(found));
