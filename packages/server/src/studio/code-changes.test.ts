import { expect, it } from "vitest";
import { codeChanges } from "./code-changes.js";

const diff = (file: string, lines: string): string =>
  `diff --git a/${file} b/${file}\nindex 12ab..34cd 100644\n--- a/${file}\n+++ b/${file}\n@@ -1 +1 @@\n${lines}\n`;

it("lists each changed file of each repository, with its commit", () => {
  const text = `### repo: /home/me/cookbook @ abc123\n${diff("train.py", "-old\n+new\n+more")}${diff("a b/c.py", "+one")}### repo: /home/me/other @ def\n`;
  expect(codeChanges(text)).toEqual({
    cookbook: "commit abc123",
    "cookbook/train.py": expect.stringMatching(/^\+2 −1 \([\da-f]{7}\)$/) as string,
    "cookbook/a b/c.py": expect.stringMatching(/^\+1 −0 /) as string,
    other: "commit def",
  });
});

it("gives the same change the same name, and another one another, also of equal length", () => {
  const change = (lines: string): string | undefined => codeChanges(diff("a.py", lines))["a.py"];
  expect(change("-x\n+y")).toBe(change("-x\n+y"));
  expect(change("-x\n+y")).not.toBe(change("-x\n+z"));
  const moved = diff("a.py", "-x\n+y").replace("12ab", "99ff");
  expect(codeChanges(moved)["a.py"]).toBe(change("-x\n+y"));
});

it("lists no more of very many files than a page can show", () => {
  const text = Array.from({ length: 300 }, (_, index) => diff(`${index}.py`, "+x")).join("");
  expect(Object.keys(codeChanges(text))).toHaveLength(200);
});

it("finds nothing in what is no diff", () => {
  expect(codeChanges("")).toEqual({});
  expect(codeChanges("<b>some</b> text\n@ nothing")).toEqual({});
});
