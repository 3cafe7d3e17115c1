import type { Step } from "../story.js";

/** How most stories begin: when, in which weather, and where the hero went. */
export const opening: Step = {
  oneOf: [
    {
      say: "On a {weather} day {hero} [went|walked] to the {place}.",
      ask: "What was the weather like?",
      answer: "It was {weather}.",
    },
    {
      say: "[Last|On] {day} {hero} [went|walked|ran] to the {place}.",
      ask: "On which day did {hero} go to the {place}?",
      answer: "On {day}.",
    },
    {
      say: "[One {dayTime}|Early one {dayTime}|Late one {dayTime}] {hero} [went|walked] to the {place}.",
      ask: "At which time of day did {hero} go to the {place}?",
      answer: "In the {dayTime}.",
    },
    {
      say: "{hero} and {hero.his} {relative} [went|walked] to the {place} together.",
      ask: "Who went to the {place} with {hero}?",
      answer: "{Hero.his} {relative}.",
    },
  ],
};

/** How most stories end: the day is over, and it was a good one. */
export const ending: Step = {
  oneOf: [
    "In the evening {hero} [slept well|told everybody about it|thought about it for a long time].",
    "It was a [good|fine|lovely] day.",
    "{hero} [never forgot that day|smiled for hours|was happy for the rest of the day].",
    'At night {hero} said, "[What a day|That was fun|I will do it again]!"',
    "And so the day ended [well|with a song|with a warm cup of tea].",
  ],
};
