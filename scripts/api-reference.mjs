// Writes docs/api, which is not committed: every public name with its sentence and its signature, read from the compiled
// declarations. test/exports holds the signatures alone, so that a change of the public API is seen in a diff.
//   npm run docs
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./ready.mjs";

/** Entry points for this repository's packages alone. */
const internal = /^@tinker-ts\/hub\/(files|weights|retry)$|^@tinker-ts\/server\/local$/;

/** What an entry point exports, in alphabetical order: name, sentence and signature of each. */
export function publicNames(file) {
  return [...exportsOf(file).values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** A signature without the comments inside of it. */
export function withoutComments(text) {
  return text.replaceAll(/^\s*\/\*\*[^]*?\*\/\n/gm, "");
}

/** A signature with the members of its unions in alphabetical order: that of the compiler differs from build to build. */
export function withSortedUnions(text) {
  let sorted = "";
  for (let at = 0; at < text.length; at++) {
    if (text[at] !== "(") {
      sorted += text[at];
      continue;
    }
    const members = [];
    for (let end = closingOf(text, at); ; end = closingOf(text, at)) {
      members.push(`(${withSortedUnions(text.slice(at + 1, end))})`);
      at = end;
      if (!text.startsWith(" | (", end + 1)) break;
      at += 4;
    }
    sorted += members.toSorted().join(" | ");
  }
  return sorted;
}

function closingOf(text, open) {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === "(") depth++;
    if (text[at] === ")" && --depth === 0) return at;
  }
  return text.length;
}

/** The pages of docs/api by file name. */
function apiReference() {
  const pages = new Map();
  const rows = [];
  for (const { name, description, file } of entryPoints()) {
    const page = `${name.replace(/^@/, "").replaceAll("/", "-")}.md`;
    const sections = publicNames(file).map(
      ({ name: title, doc, text }) =>
        `## ${title}\n\n${doc === "" ? "" : `${doc}\n\n`}\`\`\`ts\n${text}\n\`\`\`\n`,
    );
    pages.set(page, [`# ${name}\n\n${description}\n`, ...sections].join("\n"));
    rows.push(`- [\`${name}\`](${page}): ${description}`);
  }
  const head =
    "# API reference\n\nWritten by `npm run docs` from the declarations of the packages.\n";
  pages.set("README.md", `${head}\n${rows.join("\n")}\n`);
  return pages;
}

/** The public entry points of all packages, each with its declaration file. */
export function entryPoints() {
  return readdirSync(path.join(root, "packages"))
    .toSorted()
    .flatMap((folder) => {
      const base = path.join(root, "packages", folder);
      const { name, description, exports } = JSON.parse(
        readFileSync(path.join(base, "package.json"), "utf8"),
      );
      return Object.entries(exports)
        .filter(([, target]) => target.types)
        .map(([entry, { types }]) => ({
          folder,
          name: path.posix.join(name, entry),
          description,
          file: path.join(base, types),
        }));
    })
    .filter(({ name }) => !internal.test(name));
}

/** What a declaration file exports: name, sentence and text of each. */
function exportsOf(file) {
  const { declarations, imports, statements } = read(file);
  const found = new Map();
  const add = (name, local, from) => {
    if (from === undefined) return found.set(name, { name, ...declarations.get(local) });
    const target = resolve(file, from);
    const text = `import { ${name} } from "${from}";`;
    if (target === undefined) return found.set(name, { name, doc: "", text });
    const origin = exportsOf(target).get(local);
    if (origin !== undefined) found.set(name, { ...origin, name });
  };
  for (const { names, from } of statements) {
    if (names === "*") {
      const target = resolve(file, from);
      if (target !== undefined) for (const [name, one] of exportsOf(target)) found.set(name, one);
      continue;
    }
    for (const one of names.split(",").map((part) => part.trim().replace(/^type /, ""))) {
      const [local, name = local] = one.split(" as ").map((part) => part.trim());
      if (local === "") continue;
      if (from !== undefined || declarations.has(local)) add(name, local, from);
      else if (imports.has(local)) add(name, imports.get(local).name, imports.get(local).from);
    }
  }
  for (const [name, { isExported }] of declarations) if (isExported) add(name, name);
  return found;
}

const known = new Map();

/** Declarations, imports and export statements of a file. */
function read(file) {
  if (known.has(file)) return known.get(file);
  const declarations = new Map();
  const imports = new Map();
  const statements = [];
  for (const { doc, text } of statementsOf(readFileSync(file, "utf8"))) {
    const again = /^export (?:type )?(?:\{([^]*)\}|(\*))(?: from "(.*)")?;$/.exec(text);
    if (again) {
      statements.push({ names: again[2] ?? again[1], from: again[3] });
      continue;
    }
    const imported = /^import (?:type )?\{([^]*)\} from "(.*)";$/.exec(text);
    if (imported) {
      for (const one of imported[1].split(",").map((part) => part.trim().replace(/^type /, ""))) {
        const [name, local = name] = one.split(" as ");
        imports.set(local, { name, from: imported[2] });
      }
      continue;
    }
    const declared =
      /^(export )?(?:declare )?(?:abstract )?(?:class|function|const|let|interface|type|enum) (\w+)/.exec(
        text,
      );
    if (!declared) continue;
    const [, isExported, name] = declared;
    const plain = text
      .replace(/^export /, "")
      .replace(/^declare /, "")
      .replaceAll(/\n\s*#private;/g, "")
      .replaceAll(/\n\s*private constructor\(.*\);/g, "");
    const before = declarations.get(name);
    declarations.set(name, {
      doc: before?.doc || doc,
      text: before === undefined ? plain : `${before.text}\n${plain}`,
      isExported: isExported !== undefined,
    });
  }
  const result = { declarations, imports, statements };
  known.set(file, result);
  return result;
}

/** The statements at the top of a file, each with the comment before it. */
function* statementsOf(source) {
  const tokens = /\/\*[^]*?\*\/|\/\/.*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`|[{}()[\];]|[^]/g;
  let [depth, start, doc] = [0, 0, ""];
  for (const { 0: token, index } of source.matchAll(tokens)) {
    const isEmpty = source.slice(start, index).trim() === "";
    if (token.startsWith("/*") && depth === 0 && isEmpty) {
      doc = token.startsWith("/**") ? textOf(token) : "";
      start = index + token.length;
      continue;
    }
    if ("{([".includes(token)) depth++;
    if ("})]".includes(token)) depth--;
    const end = index + token.length;
    const text = source.slice(start, end).trim();
    const isBlock = /^(export )?(declare )?(abstract )?(class|interface|enum) /.test(text);
    if (depth === 0 && (token === ";" || (token === "}" && isBlock))) {
      if (text !== ";" && text !== "") yield { doc, text };
      [start, doc] = [end, ""];
    }
  }
}

function textOf(comment) {
  return comment
    .slice(3, -2)
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trimEnd())
    .join("\n")
    .trim();
}

function resolve(file, from) {
  if (!from.startsWith(".")) return undefined;
  const target = path.resolve(path.dirname(file), from.replace(/\.js$/, ".d.ts"));
  return existsSync(target) ? target : undefined;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const folder = path.join(root, "docs/api");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of apiReference()) writeFileSync(path.join(folder, name), text);
}
