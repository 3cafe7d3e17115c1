import { entries } from "./entry.js";

/** Things that one can hold. */
export const things = entries(
  ["plural", "use"],
  `
  ball, balls, play
  book, books, read
  cup, cups, drink
  key, keys, open a door
  lamp, lamps, see in the dark
  drum, drums, make music
  flute, flutes, make music
  spoon, spoons, eat soup
  knife, knives, cut bread
  pot, pots, cook
  broom, brooms, sweep the floor
  rope, ropes, tie a boat
  bag, bags, carry food
  basket, baskets, carry food
  umbrella, umbrellas, stay dry
  blanket, blankets, stay warm
  clock, clocks, tell the time
  pencil, pencils, write
  brush, brushes, paint
  bell, bells, ring
  ladder, ladders, climb
  needle, needles, sew
  `,
);

/** Things to play with or to treasure. */
export const treasures = entries(
  ["plural"],
  `
  ball, balls
  kite, kites
  drum, drums
  doll, dolls
  boat, boats
  ring, rings
  shell, shells
  feather, feathers
  button, buttons
  coin, coins
  stone, stones
  book, books
  marble, marbles
  bell, bells
  key, keys
  `,
);

/** Clothes. */
export const clothes = entries(
  ["plural"],
  `
  hat, hats
  coat, coats
  scarf, scarves
  shirt, shirts
  dress, dresses
  jacket, jackets
  cap, caps
  sweater, sweaters
  `,
);

/** Colours. */
export const colours = entries(
  ["like"],
  `
  red, a cherry
  blue, the sky
  green, grass
  yellow, the sun
  white, snow
  black, the night
  brown, a nut
  grey, a cloud
  pink, a pig
  purple, a plum
  `,
);

/** Places to go to. */
export const places = entries(
  ["at", "kind"],
  `
  garden, in, outside
  kitchen, in, room
  market, at, town
  forest, in, outside
  river, at, outside
  lake, at, outside
  hill, on, outside
  park, in, outside
  school, at, room
  barn, in, room
  beach, on, outside
  village, in, town
  shop, in, room
  library, in, room
  meadow, on, outside
  bridge, on, outside
  mill, at, room
  yard, in, outside
  station, at, town
  tower, in, room
  `,
);

/** Places inside a house or beside it where things lie. */
export const spots = entries(
  [],
  `
  under the table
  on the shelf
  behind the door
  in the drawer
  beside the stove
  under the bed
  in the basket
  on the chair
  behind the curtain
  near the window
  under the stairs
  in the wooden box
  `,
);

/** Trees and flowers. */
export const plants = entries(
  ["plural"],
  `
  rose, roses
  tulip, tulips
  sunflower, sunflowers
  daisy, daisies
  lily, lilies
  bean, beans
  pumpkin, pumpkins
  tomato, tomatoes
  `,
);
