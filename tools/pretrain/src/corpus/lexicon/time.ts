import { entries } from "./entry.js";

/** The days of the week, in order. */
export const days: readonly string[] =
  "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(" ");

/** The months of the year, in order. */
export const months: readonly string[] =
  "January February March April May June July August September October November December".split(
    " ",
  );

/** The seasons, in order. */
export const seasons: readonly string[] = ["spring", "summer", "autumn", "winter"];

/** The numbers from zero to twenty, as words. */
export const numberWords: readonly string[] = (
  "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen " +
  "sixteen seventeen eighteen nineteen twenty"
).split(" ");

/** Times of the day. */
export const dayTimes = entries(
  [],
  `
  morning
  afternoon
  evening
  `,
);

/** Kinds of weather and what they are like. */
export const weather = entries(
  ["sky", "feel"],
  `
  sunny, the sky was blue, warm
  rainy, it rained all day, wet
  windy, the wind was strong, fresh
  snowy, white snow fell, cold
  foggy, the hills were hidden, damp
  stormy, the clouds were dark, wild
  frosty, the grass was white, cold
  cloudy, grey clouds passed by, cool
  `,
);
