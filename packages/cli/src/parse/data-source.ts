import path from "node:path";

/** A data set of the hub as it is written, or the path of a file. */
export function dataSource(text: string, cwd: string): string {
  return text.startsWith("hf:") ? text : path.resolve(cwd, text);
}
