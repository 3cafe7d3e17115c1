import { animals } from "./animals.js";
import type { Entry } from "./entry.js";
import { countedFood, dishes, ingredients, measuredFood } from "./food.js";
import { jobs, people, relatives } from "./people.js";
import { clothes, colours, places, plants, spots, things, treasures } from "./things.js";
import { days, dayTimes, months, numberWords, seasons, weather } from "./time.js";
import { feelings, qualities, verbs } from "./words.js";

const plain = (list: readonly string[]): readonly Entry[] => list.map((text) => ({ text }));

/** What can fill a blank of a template, by the blank's name. */
const categories: Readonly<Record<string, readonly Entry[]>> = {
  hero: people,
  friend: people,
  relative: relatives,
  job: jobs,
  animal: animals,
  food: countedFood,
  fruit: countedFood.filter(({ kind }) => kind === "fruit"),
  drink: measuredFood,
  ingredient: ingredients,
  dish: dishes,
  thing: things,
  treasure: treasures,
  clothing: clothes,
  colour: colours,
  place: places,
  outside: places.filter(({ kind }) => kind === "outside"),
  room: places.filter(({ kind }) => kind === "room"),
  spot: spots,
  plant: plants,
  quality: qualities,
  feeling: feelings,
  verb: verbs,
  day: plain(days),
  month: plain(months),
  season: plain(seasons),
  dayTime: dayTimes,
  weather,
  few: plain(numberWords.slice(2, 7)),
};

/** What can fill a blank: its name is a category, with a digit when there are several of it. */
export function slotEntries(slot: string): readonly Entry[] {
  const list = categories[slot.replace(/\d$/, "")];
  if (list === undefined) throw new Error(`there is no category for the blank {${slot}}`);
  return list;
}
