import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "./support/source-graph.js";

/*
 * Words that mark an odd sentence here: programs return, report, send, show and log; they do not tell or hear. The
 * folders and pages are those that were read through; more are added as they are.
 */
const packages = ["sdk", "hub", "engine", "server", "studio", "cookbook", "cli"];
const unreadPages =
  /^(clients|configuration|engine|glossary|install|migration|models|parity|quickstart|server)\.md$|^tutorial\//;
const odd =
  /\b(tells?|told|telling|hears?|heard|whose|whoever|stands? for|lets? go of|nobody|somebody|as it were|is said|what is said|surroundings|wayOut|(one|those) who|to be had|was promised|says whether)\b/i;

/** Lines in which such a word is the right one: prompts, and a template of a model's makers. */
const allowed: readonly string[] = ['"Tell me', "do not tell the user"];

interface SourceFile {
  readonly name: string;
  readonly text: string;
}

function filesOf(folder: string, isChecked: (name: string) => boolean): readonly SourceFile[] {
  const names = readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
    .map((name) => name.replaceAll(path.sep, "/"))
    .filter((name) => !/(^|\/)(node_modules|fixtures)\//.test(name) && isChecked(name));
  expect(names.length).toBeGreaterThan(0);
  return names.map((name) => ({
    name,
    text: readFileSync(path.join(root, folder, name), "utf8"),
  }));
}

function linesOf(files: readonly SourceFile[]): readonly string[] {
  return files.flatMap(({ name, text }) =>
    text.split("\n").map((line, index) => `${name}:${index + 1}: ${line.trim()}`),
  );
}

function oddLines(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => odd.test(line) && !allowed.some((text) => line.includes(text)));
}

const isSource = (name: string): boolean => /\.tsx?$/.test(name) && !name.includes(".test.");

describe("the words of the field are used", () => {
  it.each(packages)("in the source of %s", (name) => {
    expect(oddLines(linesOf(filesOf(`packages/${name}/src`, isSource)))).toEqual([]);
  });

  it("in the docs", () => {
    // The pages of docs/api are generated from the sources, and may be there or not.
    const isRead = (name: string): boolean =>
      name.endsWith(".md") && !unreadPages.test(name) && !/^api[/\\]/.test(name);
    expect(oddLines(linesOf(filesOf("docs", isRead)))).toEqual([]);
  });
});

/** A text followed by a function: the titles of tests, and of groups of tests. */
const titlePattern =
  /\(\s*("(?:[^"\\\n]|\\.)*"|`[^`]*`),\s*(?:\{[^{}]*\},\s*)?(?:async )?(?:\(|[a-z]+ =>)/g;

describe.each(packages)("test titles of %s", (name) => {
  const isTest = (file: string): boolean => /^(src|test)\/.*\.test\.tsx?$/.test(file);
  const titles = filesOf(`packages/${name}`, isTest).flatMap((file) =>
    [...file.text.matchAll(titlePattern)].map(([, title]) => `${file.name}: ${title}`),
  );

  it("use the words of the field", () => {
    expect(titles.length).toBeGreaterThan(10);
    expect(oddLines(titles)).toEqual([]);
  });

  it("have no numbers of a checklist", () => {
    expect(titles.filter((line) => /: ["`]\d+(, \d+)*: /.test(line))).toEqual([]);
  });
});
