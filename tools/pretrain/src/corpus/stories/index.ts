import type { Story } from "../story.js";
import { animalStories } from "./animals.js";
import { gardenStories } from "./garden.js";
import { kitchenStories } from "./kitchen.js";
import { outdoorStories } from "./outdoors.js";
import { peopleStories } from "./people.js";

/** Every kind of story. */
export const stories: readonly Story[] = [
  ...gardenStories,
  ...kitchenStories,
  ...animalStories,
  ...outdoorStories,
  ...peopleStories,
];
