import { entries } from "./entry.js";

/** Animals and what everybody knows about them. */
export const animals = entries(
  ["plural", "young", "sound", "home", "food", "legs", "colour", "trait"],
  `
  cat, cats, kitten, meow, house, fish, four, grey, quiet
  dog, dogs, puppy, woof, house, meat, four, brown, faithful
  fox, foxes, cub, yip, forest, mice, four, red, clever
  hen, hens, chick, cluck, barn, corn, two, brown, busy
  duck, ducks, duckling, quack, pond, bread, two, white, cheerful
  cow, cows, calf, moo, meadow, grass, four, brown, gentle
  horse, horses, foal, neigh, meadow, hay, four, black, strong
  sheep, sheep, lamb, baa, hill, grass, four, white, gentle
  goat, goats, kid, bleat, hill, leaves, four, grey, stubborn
  pig, pigs, piglet, oink, farm, corn, four, pink, hungry
  mouse, mice, pup, squeak, hole, cheese, four, grey, shy
  frog, frogs, tadpole, croak, pond, flies, four, green, cheerful
  owl, owls, owlet, hoot, tree, mice, two, brown, wise
  bear, bears, cub, growl, cave, honey, four, brown, strong
  rabbit, rabbits, bunny, squeak, hole, carrots, four, grey, shy
  bee, bees, grub, buzz, hive, honey, six, yellow, busy
  wolf, wolves, cub, howl, forest, meat, four, grey, hungry
  deer, deer, fawn, bleat, forest, leaves, four, brown, shy
  hedgehog, hedgehogs, hoglet, sniff, hedge, snails, four, brown, careful
  squirrel, squirrels, kit, chatter, tree, nuts, four, red, quick
  goose, geese, gosling, honk, farm, grass, two, white, proud
  donkey, donkeys, foal, bray, farm, hay, four, grey, stubborn
  crow, crows, chick, caw, tree, seeds, two, black, clever
  lion, lions, cub, roar, cave, meat, four, yellow, proud
  robin, robins, chick, tweet, hedge, seeds, two, red, cheerful
  turtle, turtles, hatchling, hiss, river, leaves, four, green, slow
  `,
);
