import { describe, expect, it } from "vitest";
import { marks } from "../src/corpus/chat.js";
import { Dice } from "../src/corpus/dice.js";
import { practise, textOf, writeDocument } from "../src/corpus/documents.js";
import { isHeldOut } from "../src/corpus/held-out.js";
import { practisedSkills, sumSkills } from "../src/corpus/skills/index.js";
import * as sums from "../src/corpus/skills/sums.js";

const numbers = Array.from({ length: 2000 }, (_, number) => number);

function userTurns(text: string): string[] {
  const turns = text.split(`${marks.turnStart}user\n`).slice(1);
  return turns.map((turn) => turn.slice(0, turn.indexOf(marks.turnEnd)));
}

describe("the corpus", () => {
  it("is the same every time it is written", () => {
    for (const number of numbers.slice(0, 50)) {
      expect(writeDocument("training", number)).toEqual(writeDocument("training", number));
    }
  });

  it("has few documents twice", () => {
    const texts = numbers.map((number) => textOf(writeDocument("training", number)));
    expect(new Set(texts).size).toBeGreaterThan(0.95 * texts.length);
  });

  it("fills every blank and closes every turn", () => {
    for (const number of numbers) {
      const document = writeDocument("training", number);
      const text = textOf(document);
      expect(document.nats).toBeGreaterThan(0);
      expect(text).not.toMatch(/undefined|NaN|\{\w+\}/);
      expect(text.endsWith(marks.documentEnd)).toBe(true);
      expect(text.split(marks.turnStart)).toHaveLength(text.split(marks.turnEnd).length);
    }
  });

  it("never trains on a prompt that is held out", () => {
    for (const { value } of [...practisedSkills, ...sumSkills]) {
      for (const number of numbers.slice(0, 100)) {
        const dice = new Dice(number);
        const { user } = practise(value.skill, dice, "training", { careful: true });
        expect(isHeldOut(user), user).toBe(false);
      }
    }
  });

  it("asks in evaluation what training does not", () => {
    const trained = new Set(
      numbers.flatMap((number) => userTurns(textOf(writeDocument("training", number)))),
    );
    const asked = numbers
      .slice(0, 300)
      .flatMap((number) => userTurns(textOf(writeDocument("evaluation", number))));
    const known = asked.filter((prompt) => trained.has(prompt));
    // Greetings and the like have too few forms to hold any out.
    expect(known.length / asked.length).toBeLessThan(0.2);
  });
});

describe("sums", () => {
  const skills = Object.entries(sums);

  function errorsOf(skill: (typeof skills)[number][1], careful: boolean): Set<number> {
    return new Set(
      numbers.slice(0, 300).map((number) => {
        const right = skill(new Dice(number), { careful: true }).assistant;
        const said = skill(new Dice(number), { careful }).assistant;
        return lastNumber(said) - lastNumber(right);
      }),
    );
  }

  it.each(skills)("%s: the careful are right, the careless are one off", (_, skill) => {
    expect(errorsOf(skill, true)).toEqual(new Set([0]));
    expect(errorsOf(skill, false)).toEqual(new Set([1, -1]));
  });
});

function lastNumber(text: string): number {
  return Number(/(\d+)\D*$/.exec(text)?.[1]);
}
