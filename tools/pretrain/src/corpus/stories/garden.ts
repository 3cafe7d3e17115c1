import { maybe, type Story } from "../story.js";
import { ending, opening } from "./opening.js";

/** Stories about growing, digging and finding. */
export const gardenStories: readonly Story[] = [
  {
    topic: "[a {plant}|a garden|{hero}]",
    steps: [
      {
        say: "[In the spring|One {dayTime}] {hero} planted {few} {plant.plural} [behind the house|in the garden|near the gate].",
        ask: "What did {hero} plant?",
        answer: "{Few} {plant.plural}.",
      },
      maybe({
        say: "{friend} gave {hero.him} the seeds.",
        ask: "Who gave {hero} the seeds?",
        answer: "{friend}.",
      }),
      "[Every day|Every morning|Each evening] {hero.he} [gave them water|watered them|looked at them].",
      "[At first nothing happened|For a long time there was only earth|The days were long and dry].",
      {
        say: "[Then|After {few2} days|One {dayTime2}] {hero.he} saw a small {colour} [leaf|flower|spot] in the earth.",
        ask: "What colour was it in the earth?",
        answer: "It was {colour}.",
      },
      '[{Hero.he} was so happy that {hero.he} danced|"{Plant.plural} need time," said {hero}|"It grows!" called {hero}].',
      maybe(
        "Soon the whole garden [smelled sweet|was full of {plant.plural}|was bright and green].",
      ),
      ending,
    ],
  },
  {
    topic: "[a {treasure}|a lost {treasure}|{hero}]",
    steps: [
      opening,
      {
        say: "There {hero.he} [found|saw] a {colour} {treasure} [under a stone|in the grass|beside an old tree|near the path].",
        ask: "What did {hero} find?",
        answer: "A {colour} {treasure}.",
      },
      '["Who has lost this?" {hero.he} asked|"This is not mine," {hero.he} said|{Hero.he} picked it up and looked at it].',
      {
        say: "{Hero.he} [showed it to|took it to|asked] {friend}[, who was sitting in the sun| at once|].",
        ask: "Who saw the {treasure} next?",
        answer: "{friend}.",
      },
      {
        oneOf: [
          '"[Oh, that is mine|You have found my {treasure}|I lost it {few} days ago]!" said {friend}. "Thank you, {hero}!"',
          '"It is not mine," said {friend}. "[Keep it|You may keep it|Maybe it was made for you]."',
          '"Let us ask the {job}," said {friend}. The {job} [knew at once whose it was|laughed and took it back].',
        ],
      },
      maybe({
        say: "{friend} gave {hero} {few2} {food.plural} as a thank you.",
        ask: "What did {friend} give to {hero}?",
        answer: "{Few2} {food.plural}.",
      }),
      ending,
    ],
  },
  {
    topic: "[a {animal} in the garden|a hungry {animal}|a {animal}]",
    steps: [
      {
        say: "A {quality} {animal} [lived|had its home] [behind|near|beside] the garden of {hero}.",
        ask: "What animal lived near {hero}'s garden?",
        answer: "A {animal}.",
      },
      "[Every night|Each {dayTime}|Again and again] it came and ate {hero.his} {plant.plural}.",
      '[{hero} was not pleased|"My poor {plant.plural}!" said {hero}|{hero} did not know what to do].',
      {
        say: '{Hero.his} {relative} said, "[Put out|Give it|Leave it] some {food.plural}, and it will leave your {plant.plural} alone."',
        ask: "What did the {relative} want to give to the {animal}?",
        answer: "Some {food.plural}.",
      },
      "So {hero} [did just that|put {few} {food.plural} on a plate|filled a bowl with {food.plural}].",
      "The {animal} [ate them all|was very glad|came, looked and ate], and the {plant.plural} [were safe|grew tall].",
      maybe({
        say: "{hero} called the {animal} [my {colour} guest|the {colour} thief].",
        ask: "What colour did {hero} name when {hero.he} spoke of the {animal}?",
        answer: "{Colour}.",
      }),
      ending,
    ],
  },
  {
    topic: "[a tree|an apple tree|the {fruit.plural}]",
    steps: [
      "[Behind the house|On the hill|Near the {outside}] stood an old tree full of {fruit.plural}.",
      {
        say: "[One {dayTime}|In the autumn] {hero} and {friend} [took|carried] a [ladder|long stick|big basket] to the tree.",
        ask: "Who went to the tree with {hero}?",
        answer: "{friend}.",
      },
      {
        say: "{hero} picked {few} {fruit.plural}, and {friend} picked {few2}.",
        ask: "How many {fruit.plural} did {friend} pick?",
        answer: "{Few2}.",
      },
      '["They are so {fruit.taste}!" said {friend}|{friend} ate one at once|One fell down and hit {friend} on the head].',
      maybe({
        say: "A {animal} [watched them|came near] and [wanted one too|made a sound].",
        ask: "Which animal was there?",
        answer: "A {animal}.",
      }),
      "[Then they shared everything|They gave the rest to {hero}'s {relative}|In the end the basket was full].",
      ending,
    ],
  },
];
