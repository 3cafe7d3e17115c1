import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readHoverTexts } from "../scripts/hover-text.js";
import { readDescriptions } from "../scripts/type-descriptions.js";
import { wireTypes } from "../src/wire/index.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
  exports: Record<string, string | { types: string }>;
};
const entries = Object.values(manifest.exports).flatMap((entry) =>
  typeof entry === "string" ? [] : [path.join(root, entry.types)],
);

it("every exported name and each of its members has a doc comment", () => {
  const texts = readHoverTexts(entries);
  const silent = texts.flatMap(({ name, text, members }) => [
    ...(text === "" ? [name] : []),
    ...[...members].filter(([, member]) => member.text === "").map(([key]) => `${name}.${key}`),
  ]);
  expect(silent).toEqual([]);
  const members = texts.reduce((sum, text) => sum + text.members.size, 0);
  expect(members).toBeGreaterThan(texts.length);
});

it("every type of the API is described, with the defaults of its schema", () => {
  const descriptions = readDescriptions();
  const wrong: string[] = [];
  for (const [name, { node }] of Object.entries(wireTypes)) {
    if (node.kind !== "object") continue;
    const described = descriptions.get(name);
    if (node.fields.size > 0 && !described?.text) wrong.push(name);
    for (const field of node.fieldList) {
      const member = described?.members.get(field.name);
      if (!member?.text) wrong.push(`${name}.${field.name}`);
      if (field.presence !== "default" || field.node.kind === "literal") continue;
      if (member?.default !== JSON.stringify(field.default)) {
        wrong.push(`${name}.${field.name} @default ${JSON.stringify(field.default)}`);
      }
    }
  }
  expect(wrong).toEqual([]);
});

it("internal names are not declared", () => {
  const dist = path.join(root, "dist");
  const declarations = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".d.ts"),
  );
  expect(declarations.length).toBeGreaterThan(100);
  const marked = declarations.filter((file) =>
    readFileSync(path.join(dist, file), "utf8").includes("@internal"),
  );
  expect(marked).toEqual([]);
});
