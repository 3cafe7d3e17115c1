import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "./support/source-graph.js";

const page = readFileSync(path.join(root, "docs/architecture.md"), "utf8");
const [folders = "", walks = ""] = page.split("## Walks");

describe("docs/architecture.md", () => {
  it.each(["sdk", "hub", "engine", "server", "cookbook", "studio", "cli"])(
    "lists every folder of packages/%s/src, and none that is gone",
    (name) => {
      const source = path.join(root, "packages", name, "src");
      const found = readdirSync(source, { withFileTypes: true })
        .filter((entry) => entry.isDirectory() && entry.name !== "styles")
        .map((entry) => entry.name);
      const section = folders.slice(folders.indexOf(`\`packages/${name}/src\`:`));
      const rows = section.slice(0, section.indexOf("\n`packages/", 1)).match(/^\| `.*/gm) ?? [];
      const listed = rows.flatMap((row) =>
        [...(row.split("|")[1] ?? "").matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ""),
      );
      expect(found.filter((folder) => !listed.includes(folder))).toEqual([]);
      expect(listed.filter((entry) => !existsSync(path.join(source, entry)))).toEqual([]);
    },
  );

  it("names files that exist in its walks", () => {
    const files = [
      ...walks.matchAll(/^(?:\d+\.|-) (sdk|hub|engine|server|cookbook): (.*(?:\n {2,}.*)*)/gm),
    ];
    const missing = files.flatMap(([, name = "", list = ""]) =>
      [...list.matchAll(/`([\w./-]+)`/g)]
        .map((match) => `packages/${name}/src/${match[1]}.ts`)
        .filter((file) => !existsSync(path.join(root, file))),
    );
    expect(files.length).toBeGreaterThan(10);
    expect(missing).toEqual([]);
  });
});
