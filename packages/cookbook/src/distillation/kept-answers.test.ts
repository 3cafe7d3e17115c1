import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { ModelInput } from "tinker-ts";
import { afterEach, beforeEach, expect, it } from "vitest";
import { answersFile, KeptAnswers } from "./kept-answers.js";
import type { TeacherTopK } from "./soft-targets.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "kept-answers-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const sequences = [3, 4, 5].map((length) =>
  ModelInput.fromInts(Array.from({ length }, (_, at) => at)),
);

/** The first missing, one without a token, the others with as many as their place. */
const answerTo = ({ length }: ModelInput): TeacherTopK =>
  Array.from({ length }, (_, place) =>
    place === 0
      ? null
      : Array.from({ length: place - 1 }, (_x, slot) => [slot + length, -slot / 4]),
  );

/** Asks for everything at once; returns what was said, and of how many sequences the teacher was asked. */
async function askAll(k = 8): Promise<{ said: TeacherTopK[]; asked: number }> {
  const answers = await KeptAnswers.open(folder);
  let asked = 0;
  const said = await Promise.all(
    sequences.map((sequence) => answers.of(sequence, k, async () => (asked++, answerTo(sequence)))),
  );
  await answers.close();
  return { said, asked };
}

it("asks once, and returns the same answers afterwards", async () => {
  const first = await askAll();
  expect(first).toEqual({ said: sequences.map(answerTo), asked: 3 });
  expect(await askAll()).toEqual({ said: first.said, asked: 0 });
  expect(await askAll(4)).toEqual({ said: first.said, asked: 3 });
});

it("asks again for answers lost in a crash", async () => {
  const { said } = await askAll();
  const file = path.join(folder, answersFile);
  const whole = await readFile(file);
  for (let length = 0; length < whole.length; length += 7) {
    await writeFile(file, whole.subarray(0, length));
    const missing = 3 - whole.subarray(0, length).toString().split("\n").length + 1;
    expect(await askAll()).toEqual({ said, asked: missing });
    expect(await askAll()).toEqual({ said, asked: 0 });
  }
});

it("starts over on request", async () => {
  await askAll();
  const answers = await KeptAnswers.open(folder, { isEmpty: true });
  let asked = 0;
  await answers.of(sequences[0]!, 8, async () => (asked++, [null]));
  await answers.close();
  expect(asked).toBe(1);
});
