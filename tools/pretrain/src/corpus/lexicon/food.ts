import { entries } from "./entry.js";

/** Food that is counted. */
export const countedFood = entries(
  ["plural", "kind", "taste"],
  `
  apple, apples, fruit, sweet
  pear, pears, fruit, sweet
  plum, plums, fruit, sweet
  cherry, cherries, fruit, sweet
  lemon, lemons, fruit, sour
  peach, peaches, fruit, sweet
  carrot, carrots, vegetable, fresh
  potato, potatoes, vegetable, soft
  onion, onions, vegetable, sharp
  tomato, tomatoes, vegetable, fresh
  bean, beans, vegetable, fresh
  cookie, cookies, cake, sweet
  pancake, pancakes, cake, sweet
  muffin, muffins, cake, sweet
  pie, pies, cake, sweet
  roll, rolls, bread, soft
  egg, eggs, egg, soft
  nut, nuts, nut, crisp
  sandwich, sandwiches, bread, fresh
  mushroom, mushrooms, vegetable, soft
  `,
);

/** Food that comes as some of it, and what it comes in. */
export const measuredFood = entries(
  ["measure", "measures"],
  `
  tea, cup, cups
  milk, glass, glasses
  water, glass, glasses
  juice, glass, glasses
  cocoa, cup, cups
  soup, bowl, bowls
  rice, bowl, bowls
  bread, slice, slices
  cheese, slice, slices
  honey, jar, jars
  jam, jar, jars
  `,
);

/** What is missing when one wants to bake. */
export const ingredients = entries(
  [],
  `
  flour
  sugar
  butter
  milk
  salt
  honey
  eggs
  cream
  `,
);

/** What one cooks or bakes. */
export const dishes = entries(
  ["verb"],
  `
  apple pie, bake
  plum cake, bake
  carrot cake, bake
  loaf of bread, bake
  pot of soup, cook
  pan of pancakes, fry
  bowl of porridge, cook
  tray of cookies, bake
  `,
);
