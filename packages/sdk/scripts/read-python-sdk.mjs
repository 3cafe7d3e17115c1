// Reads the types, fields and routes off a checkout of the official Python SDK.
//   npm run read:python -w packages/sdk -- <folder of the checkout> [file to write]
// Nothing of the checkout is kept but names: scripts/python-sdk.json, which docs/parity.md and a test
// compare with.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const [folder, target = new URL("python-sdk.json", import.meta.url)] = process.argv.slice(2);
if (!folder) {
  console.error("Usage: read-python-sdk.mjs <folder of a checkout of the Python SDK>");
  process.exit(2);
}
const source = path.join(folder, "src", "tinker");
const texts = (folderName) =>
  readdirSync(path.join(source, folderName), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".py") && !/(^cli\/|_test\.py$)/.test(name))
    .map((name) => path.join(source, folderName, name))
    .map((name) => withoutDocumentation(readFileSync(name, "utf8")));

const [, version = "unknown"] =
  /^version = "(.+)"$/m.exec(readFileSync(path.join(folder, "pyproject.toml"), "utf8")) ?? [];
const classes = new Map(
  texts("types")
    .flatMap(readClasses)
    .map((found) => [found.name, found]),
);
const types = Object.fromEntries(
  [...classes.keys()]
    .map((name) => /** @type {const} */ ([name, fieldsOf(name)]))
    .filter(([name, fields]) => fields.length > 0 && !name.startsWith("_"))
    .toSorted(([a], [b]) => a.localeCompare(b, "en")),
);
const routes = [...new Set(texts(".").flatMap(readRoutes))].toSorted((a, b) =>
  a.localeCompare(b, "en"),
);
const git = spawnSync("git", ["-C", folder, "rev-parse", "--short=7", "HEAD"], {
  encoding: "utf8",
});
const commit = git.status === 0 ? git.stdout.trim() : "unknown";
writeFileSync(target, `${JSON.stringify({ version, commit, routes, types }, null, 2)}\n`);
console.log(`${Object.keys(types).length} types and ${routes.length} routes of ${version}`);

/** Documentation talks of routes and fields too. */
function withoutDocumentation(text) {
  return text.replaceAll(/"""[^]*?"""/g, '""').replaceAll(/#.*$/gm, "");
}

/** Classes with annotated fields: models and dataclasses, indented once. */
function readClasses(text) {
  return [...text.matchAll(/^class (\w+)(?:\(([^)]*)\))?:\n((?:(?: {4}.*)?\n)*)/gm)].map(
    ([, name, bases = "", body]) => ({
      name,
      bases: bases.split(",").map((base) => base.trim()),
      fields: [...body.matchAll(/^ {4}([a-z]\w*): /gm)].map(([, field]) => field),
    }),
  );
}

/** Own fields and those of the base classes; numpy's twins of lists are the lists. */
function fieldsOf(name, seen = new Set()) {
  const found = classes.get(name);
  if (!found || seen.has(name)) return [];
  seen.add(name);
  const inherited = found.bases.flatMap((base) => fieldsOf(base, seen));
  const own = found.fields.map((field) => field.replace(/_np$/, ""));
  return [...new Set([...inherited, ...own])].filter((field) => field !== "model_config");
}

function readRoutes(text) {
  return [...text.matchAll(/f?"(\/api\/v1\/[^"\s]+)"/g)].map(([, route]) =>
    route.replaceAll(/\{[^}]*\}/g, "{}"),
  );
}
