import type { Weighted } from "../dice.js";
import * as choosing from "./choosing.js";
import * as copying from "./copying.js";
import * as counting from "./counting.js";
import * as editing from "./editing.js";
import * as knowledge from "./knowledge.js";
import * as lookup from "./lookup.js";
import * as manners from "./manners.js";
import { takeOrder } from "./orders.js";
import * as positions from "./positions.js";
import * as reading from "./reading.js";
import type { Skill } from "./skill.js";
import * as sums from "./sums.js";
import * as writing from "./writing.js";

/** A skill that is practised, and whether its answers are fixed by the question. */
export interface PractisedSkill {
  readonly name: string;
  readonly skill: Skill;
  /** One right answer, so that answers can be compared with it. */
  readonly graded: boolean;
}

function group(
  weight: number,
  graded: boolean,
  skills: Readonly<Record<string, Skill>>,
): Weighted<PractisedSkill>[] {
  return Object.entries(skills).map(([name, skill]) => ({
    weight,
    value: { name, skill, graded },
  }));
}

const { repeatTimes, changeCapitals, tellSomebody, ...repeating } = copying;
const { nameSome, ...choosingOne } = choosing;

/** Every skill with its share; sums are last, because their answers depend on the speaker. */
export const practisedSkills: readonly Weighted<PractisedSkill>[] = [
  ...group(3, true, repeating),
  ...group(1, true, { repeatTimes, changeCapitals, tellSomebody }),
  ...group(2, true, positions),
  ...group(2, true, editing),
  ...group(2, true, choosingOne),
  ...group(2, true, lookup),
  ...group(1, true, counting),
  ...group(1, true, knowledge),
  ...group(8, true, { answerAboutStory: reading.answerAboutStory }),
  ...group(1, true, { whoIsThere: reading.whoIsThere }),
  ...group(4, false, { tellStory: reading.tellStory, tellAnyStory: reading.tellAnyStory }),
  ...group(1, false, { nameSome }),
  ...group(1, false, manners),
  ...group(1.5, false, writing),
  ...group(2, false, { takeOrder }),
];

/** Sums, which get documents of their own because they show who is careful. */
export const sumSkills: readonly Weighted<PractisedSkill>[] = group(1, true, { ...sums });
