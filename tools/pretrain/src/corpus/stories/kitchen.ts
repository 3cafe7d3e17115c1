import { maybe, type Story } from "../story.js";
import { ending } from "./opening.js";

/** Stories about cooking, sharing and tidying up. */
export const kitchenStories: readonly Story[] = [
  {
    topic: "[a {dish}|baking|{hero}]",
    steps: [
      {
        say: "{hero} wanted to {dish.verb} a {dish} for {hero.his} {relative}.",
        ask: "For whom did {hero} want to {dish.verb} a {dish}?",
        answer: "For {hero.his} {relative}.",
      },
      "{Hero.he} [took a big bowl|washed {hero.his} hands|put on a {colour} apron|lit the stove].",
      {
        say: "But there was no {ingredient} [left|in the kitchen|in the house].",
        ask: "What was missing?",
        answer: "The {ingredient}.",
      },
      {
        oneOf: [
          {
            say: "So {hero.he} [went|ran] to {friend} and asked for some.",
            ask: "Whom did {hero} ask for {ingredient}?",
            answer: "{friend}.",
          },
          {
            say: "So {hero.he} [went|ran] to the {job}, who [had plenty|gave {hero.him} some].",
            ask: "Who had some {ingredient}?",
            answer: "The {job}.",
          },
        ],
      },
      "[Back home|Soon|An hour later] {hero.he} [mixed everything|stirred and stirred|hummed a song and worked].",
      "The {dish} was [warm and good|the best of the year|a little too dark, but very good].",
      maybe({
        say: "They ate it with {few} [guests|friends] [at the table|in the garden].",
        ask: "How many people came to eat?",
        answer: "{Few}.",
      }),
      ending,
    ],
  },
  {
    topic: "[the last {food}|sharing|{hero} and {friend}]",
    steps: [
      {
        say: "There was one {food} left on the {colour} plate.",
        ask: "What was left on the plate?",
        answer: "One {food}.",
      },
      {
        say: "{hero} wanted it, and {friend} wanted it too.",
        ask: "Who wanted it besides {hero}?",
        answer: "{friend}.",
      },
      '["I saw it first," said {hero}|"I am so hungry," said {friend}|They looked at the {food} and then at each other].',
      {
        oneOf: [
          "Then {hero} [took a knife|had an idea] and cut it in two.",
          'Then {friend} said, "You can have it." But {hero} [shook {hero.his} head|gave {friend.him} half].',
          {
            say: "While they talked, a {animal} came and ate it.",
            ask: "Who ate the {food}?",
            answer: "A {animal}.",
          },
        ],
      },
      "[They laughed|Both were happy|So they stayed friends], and [the next day|later] {hero.his} {relative} bought {few} more.",
      ending,
    ],
  },
  {
    topic: "[a messy room|tidying up|a lost {treasure}]",
    steps: [
      "The room of {hero} was [not tidy at all|a mess|full of things].",
      {
        say: "There was a {thing} {spot} and a {clothing} {spot2}.",
        ask: "Where was the {clothing}?",
        answer: "It was {spot2}.",
      },
      {
        say: '"Where is my {colour} {treasure}?" asked {hero}.',
        ask: "What did {hero} look for?",
        answer: "{Hero.his} {colour} {treasure}.",
      },
      "{Hero.he} [looked everywhere|began to tidy up|put one thing after the other in its place].",
      {
        say: "[At last|After a long time|In the end] {hero.he} found it {spot3}.",
        ask: "Where did {hero} find the {treasure}?",
        answer: "It was {spot3}.",
      },
      maybe({
        say: "{Hero.his} {relative} [came in and smiled|was surprised|gave {hero.him} a {food}].",
        ask: "Who came in?",
        answer: "{Hero.his} {relative}.",
      }),
      '[Now the room was clean|"A tidy room is a fine thing," said {hero}|Then {hero.he} sat down and rested].',
      ending,
    ],
  },
  {
    topic: "[the market|buying {food.plural}|{hero}]",
    steps: [
      {
        say: "On {day} {hero} went to the market with {few} coins.",
        ask: "How many coins did {hero} have?",
        answer: "{Few}.",
      },
      {
        say: "{Hero.he} wanted to buy {food.plural} for {hero.his} {relative}.",
        ask: "What did {hero} want to buy?",
        answer: "{Food.plural}.",
      },
      {
        oneOf: [
          'The {job} said, "[Good {dayTime}|Hello], {hero}! [They are fresh today|How many do you want]?"',
          "There were {food2.plural} and {food3.plural}, but no {food.plural}.",
          "The {food.plural} were [big and fresh|small but {food.taste}|nearly all gone].",
        ],
      },
      maybe({
        say: "{friend} [helped to carry the basket|walked beside {hero.him}].",
        ask: "Who was with {hero}?",
        answer: "{friend}.",
      }),
      {
        say: "[In the end|At last|After a while] {hero.he} bought {few2} {food4.plural} and [a cup of {drink}|a jar of {drink}|some {drink}].",
        ask: "How many {food4.plural} did {hero} buy?",
        answer: "{Few2}.",
      },
      ending,
    ],
  },
];
