import { createHash } from "node:crypto";

const maxFiles = 200;

/**
 * What a `code.diff` says, file by file: how many lines came and went, and a name for the change, so that runs of
 * different code are distinguished where their configurations are compared. Sections begin with `### repo: ROOT @ COMMIT`.
 */
export function codeChanges(text: string): Readonly<Record<string, string>> {
  const changes: Record<string, string> = {};
  for (const section of text.split(/^(?=### repo: )/m)) {
    const [, root = "", commit = ""] = /^### repo: (.*) @ (\S*)/.exec(section) ?? [];
    const repository = root.split(/[/\\]/).at(-1) ?? "";
    if (commit !== "") changes[repository] = `commit ${commit}`;
    for (const part of section.split(/^(?=diff --git )/m)) {
      // The name is there twice, unless the file was moved.
      const [, same, moved] = /^diff --git (?:a\/(.*) b\/\1|.* b\/(.*))$/m.exec(part) ?? [];
      const file = same ?? moved;
      if (file === undefined || Object.keys(changes).length >= maxFiles) continue;
      const lines = part.split("\n");
      const count = (sign: string): number =>
        lines.filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3))).length;
      // Which blobs are meant is no part of what was changed.
      const body = lines.filter((line) => !line.startsWith("index ")).join("\n");
      const name = createHash("sha256").update(body).digest("hex").slice(0, 7);
      changes[[repository, file].filter(Boolean).join("/")] =
        `+${count("+")} −${count("-")} (${name})`;
    }
  }
  return changes;
}
