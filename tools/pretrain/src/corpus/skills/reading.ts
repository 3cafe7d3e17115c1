import type { Dice } from "../dice.js";
import { stories } from "../stories/index.js";
import { tell } from "../story.js";
import { doNotKnow, type Exchange } from "./skill.js";

/** Answers a question about a story, also when the story does not tell. */
export function answerAboutStory(dice: Dice): Exchange {
  const { text, scene, told, open } = tell(dice.pick(stories), dice);
  const known = dice.chance(0.75);
  const fact = known ? dice.pick(told) : undefined;
  const ask = scene.say(fact?.ask ?? dice.pick(open));
  const user = dice.pick([`${text}\n\n${ask}`, `${ask}\n\n${text}`, `Read this: ${text}\n${ask}`]);
  return { user, assistant: fact ? scene.say(fact.answer) : doNotKnow };
}

/** Tells a story about something. */
export function tellStory(dice: Dice): Exchange {
  const telling = tell(dice.pick(stories), dice);
  const topic = telling.scene.phrase(telling.story.topic);
  const user = dice.pick([
    `Tell me a story about ${topic}.`,
    `Write a short story about ${topic}.`,
    `I want to hear a story about ${topic}.`,
    `Please tell a story: ${topic}`,
  ]);
  return { user, assistant: telling.text };
}

/** Tells a story about anything. */
export function tellAnyStory(dice: Dice): Exchange {
  const { text } = tell(dice.pick(stories), dice);
  const user = dice.pick(["Tell me a story.", "Do you know a story?", "Tell me a short story."]);
  return { user, assistant: text };
}

/** Finds the people in a story. */
export function whoIsThere(dice: Dice): Exchange {
  const { text, scene } = tell(dice.pick(stories), dice);
  const names = ["hero", "friend"].map((slot) => scene.entry(slot).text);
  const inStory = dice.chance(0.6);
  const name = inStory ? names.find((person) => text.includes(person)) : undefined;
  if (name === undefined) {
    const other = scene.entry("friend2").text;
    return {
      user: `${text}\n\nIs ${other} in this story?`,
      assistant: `No, ${other} is not there.`,
    };
  }
  return { user: `${text}\n\nIs ${name} in this story?`, assistant: `Yes, ${name} is there.` };
}
