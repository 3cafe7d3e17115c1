import { describe, expect, it } from "vitest";
import {
  entryPoints,
  publicNames,
  withoutComments,
  withSortedUnions,
} from "../scripts/api-reference.mjs";

const entries = entryPoints();
const packages = [...new Set(entries.map(({ folder }) => folder))];

describe.each(packages)("the public API of %s", (folder) => {
  const own = entries.filter((entry) => entry.folder === folder);

  it("is pinned with its signatures", async () => {
    const sections = own.map(({ name, file }) => {
      const names = publicNames(file).map(({ text }) => withSortedUnions(withoutComments(text)));
      return `// ${name}\n\n${names.join("\n")}\n`;
    });
    await expect(sections.join("\n")).toMatchFileSnapshot(`exports/${folder}.txt`);
  });

  it.each(own)("$name declares what it exports at run time", async ({ name, file }) => {
    const module = (await import(name)) as Record<string, unknown>;
    const declared = new Set(publicNames(file).map((one) => one.name));
    expect(Object.keys(module).filter((exported) => !declared.has(exported))).toEqual([]);
  });

  it.each(own)("$name has a sentence for every name", ({ file }) => {
    const silent = publicNames(file)
      .filter(({ doc, text }) => doc === "" && !text.startsWith("import "))
      .map(({ name }) => name);
    expect(silent).toEqual([]);
  });

  it.each(own)("$name has no names in snake_case", async ({ name }) => {
    const module = (await import(name)) as Record<string, unknown>;
    const names = Object.entries(module).flatMap(([exported, value]) => [
      exported,
      ...(typeof value === "function" ? Object.getOwnPropertyNames(value.prototype ?? {}) : []),
    ]);
    expect(names.filter((text) => /[a-z0-9]_[a-z0-9]/i.test(text))).toEqual([]);
  });
});
