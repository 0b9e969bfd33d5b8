// Lets packages import JSON as bundlers do: plain Node wants an attribute that they do not write.
import { readFile } from "node:fs/promises";

export async function load(url, context, next) {
  if (!url.endsWith(".json")) return next(url, context);
  const text = await readFile(new URL(url), "utf8");
  return { format: "module", source: `export default ${text}`, shortCircuit: true };
}
