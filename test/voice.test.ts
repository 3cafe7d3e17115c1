import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { root } from "./support/source-graph.js";

/*
 * Words that mark an odd sentence here: programs return, report, send, show and log; they do not tell or hear. The
 * folders are those that were read through; more are added as they are.
 */
const folders = ["packages/sdk/src", "packages/cli/src", "packages/cookbook/src"];
const odd =
  /\b(tells?|told|telling|hears?|heard|whose|whoever|stands? for|lets? go of|nobody|somebody|as it were|is said|what is said|surroundings|wayOut|(one|those) who|to be had|was promised|says whether)\b/i;

/** Lines in which such a word is the right one. */
const allowed: readonly string[] = ['"Tell me'];

/** Folders that were not read yet, and the page's types of the studio, which change with the page. */
const excluded = /wire\/studio|^doctor\/|^renderers\/|^hyperparameters\//;

it.each(folders)("%s uses the words of the field", (folder) => {
  const files = readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !name.includes(".test."))
    .filter((name) => !excluded.test(name.replaceAll(path.sep, "/")));
  expect(files.length).toBeGreaterThan(10);
  const lines = files.flatMap((name) =>
    readFileSync(path.join(root, folder, name), "utf8")
      .split("\n")
      .flatMap((line, index) => (odd.test(line) ? [`${name}:${index + 1}: ${line.trim()}`] : [])),
  );
  expect(lines.filter((line) => !allowed.some((text) => line.includes(text)))).toEqual([]);
});
