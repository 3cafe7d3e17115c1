import type { Entry } from "./entry.js";

const women =
  "Anna Mia Lily Emma Nora Zoe Ruth Ella Ida Rosa Lucy Clara Maya Tess Jane Vera Iris Alma Edith Hanna";
const men =
  "Ben Tom Max Leo Sam Noah Finn Paul Hugo Oscar Jack Theo Adam Felix Karl Emil Liam Otto Ivan Peter";

/** Everybody in the world of the corpus, by first name. */
export const people: readonly Entry[] = [
  ...women.split(" ").map((text) => ({ text, he: "she", him: "her", his: "her" })),
  ...men.split(" ").map((text) => ({ text, he: "he", him: "him", his: "his" })),
];

/** Relatives, as "Anna's brother". */
export const relatives: readonly Entry[] = [
  { text: "brother", he: "he", him: "him", his: "his" },
  { text: "father", he: "he", him: "him", his: "his" },
  { text: "grandfather", he: "he", him: "him", his: "his" },
  { text: "uncle", he: "he", him: "him", his: "his" },
  { text: "sister", he: "she", him: "her", his: "her" },
  { text: "mother", he: "she", him: "her", his: "her" },
  { text: "grandmother", he: "she", him: "her", his: "her" },
  { text: "aunt", he: "she", him: "her", his: "her" },
];

/** What people do for a living, and where they do it. */
export const jobs: readonly Entry[] = [
  { text: "baker", does: "bakes bread", where: "in the bakery" },
  { text: "farmer", does: "grows corn", where: "on the farm" },
  { text: "teacher", does: "teaches children", where: "at school" },
  { text: "doctor", does: "helps sick people", where: "in the hospital" },
  { text: "gardener", does: "plants flowers", where: "in the garden" },
  { text: "cook", does: "makes soup", where: "in the kitchen" },
  { text: "sailor", does: "steers a ship", where: "on the sea" },
  { text: "painter", does: "paints pictures", where: "in a bright room" },
  { text: "shepherd", does: "looks after sheep", where: "on the hill" },
  { text: "tailor", does: "sews coats", where: "in a small shop" },
];
