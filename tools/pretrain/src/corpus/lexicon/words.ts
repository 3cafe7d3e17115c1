import { entries } from "./entry.js";

/** Pairs of words that mean the opposite of each other. */
export const opposites: readonly (readonly [string, string])[] = (
  "big small, hot cold, happy sad, fast slow, wet dry, full empty, open closed, clean dirty, " +
  "dark bright, soft hard, loud quiet, high low, near far, heavy light, strong weak, early late, " +
  "day night, up down, left right, young old, tall short, rich poor, sweet sour, thick thin, " +
  "wide narrow, awake asleep, first last, begin end, push pull, give take, come go, laugh cry, " +
  "win lose, summer winter, morning evening, north south, east west, always never, before after, " +
  "inside outside, brave afraid, kind mean, rough smooth, sharp blunt, same different, true false"
)
  .split(", ")
  .map((pair) => {
    const [one = "", other = ""] = pair.split(" ");
    return [one, other];
  });

/** Words for how things and animals are. */
export const qualities = entries(
  [],
  `
  big
  small
  little
  old
  young
  soft
  heavy
  light
  clean
  round
  pretty
  strange
  shiny
  tiny
  `,
);

/** Verbs with their past. */
export const verbs = entries(
  ["past"],
  `
  go, went
  see, saw
  run, ran
  eat, ate
  sing, sang
  find, found
  take, took
  give, gave
  come, came
  make, made
  say, said
  tell, told
  buy, bought
  bring, brought
  sleep, slept
  swim, swam
  fly, flew
  drink, drank
  write, wrote
  begin, began
  know, knew
  think, thought
  walk, walked
  play, played
  jump, jumped
  help, helped
  open, opened
  wash, washed
  plant, planted
  paint, painted
  call, called
  dance, danced
  `,
);

/** Nouns whose plural cannot be guessed. */
export const oddPlurals = entries(
  ["plural"],
  `
  foot, feet
  tooth, teeth
  child, children
  leaf, leaves
  man, men
  woman, women
  loaf, loaves
  shelf, shelves
  `,
);

/** How somebody feels. */
export const feelings = entries(
  [],
  `
  happy
  sad
  tired
  hungry
  proud
  cold
  brave
  curious
  thirsty
  glad
  `,
);
