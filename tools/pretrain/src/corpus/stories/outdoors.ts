import { maybe, type Story } from "../story.js";
import { ending, opening } from "./opening.js";

/** Stories about weather, journeys and play outside. */
export const outdoorStories: readonly Story[] = [
  {
    topic: "[a rainy day|the rain|{hero} and {friend}]",
    steps: [
      "It rained [all day|and rained|from morning to evening].",
      {
        say: "{hero} and {friend} had to stay in the {room}.",
        ask: "Where did they have to stay?",
        answer: "In the {room}.",
      },
      '["What shall we do?" asked {hero}|"I do not like rain," said {friend}|They looked out of the window].',
      {
        oneOf: [
          {
            say: "They built a [house|ship|tower] out of {few} chairs and a {colour} blanket.",
            ask: "What colour was the blanket?",
            answer: "It was {colour}.",
          },
          {
            say: "They [played|sang] with a {thing} and [told stories|laughed a lot].",
            ask: "What did they use?",
            answer: "A {thing}.",
          },
          {
            say: "{friend} told a story about a {quality} {animal}.",
            ask: "What was {friend}'s story about?",
            answer: "A {quality} {animal}.",
          },
        ],
      },
      "When the rain stopped, they [did not even see it|ran outside|found a big puddle].",
      ending,
    ],
  },
  {
    topic: "[a storm|the wind|a {clothing}]",
    steps: [
      opening,
      {
        say: "[Suddenly|Then] a strong wind came and took {hero.his} {colour} {clothing}.",
        ask: "What did the wind take?",
        answer: "{Hero.his} {colour} {clothing}.",
      },
      "[It flew|It danced|It went] over the [houses|trees|river] and was gone.",
      '["Stop!" called {hero}|{hero} ran after it|"My poor {clothing}," said {hero}].',
      {
        say: "[The next day|An hour later] {friend} [found|saw] it [in a tree|on a roof|in a field].",
        ask: "Who found the {clothing}?",
        answer: "{friend}.",
      },
      maybe({
        say: "A {animal} had made its bed in it.",
        ask: "Which animal had its bed in the {clothing}?",
        answer: "A {animal}.",
      }),
      '["The wind only wanted to play," said {friend}|{hero} washed it and wore it again|"Now it has a story to tell," said {hero}].',
      ending,
    ],
  },
  {
    topic: "[the snow|winter|a snowman]",
    steps: [
      "[In the night|While everybody slept] it had snowed, and the {outside} was white.",
      {
        say: "{hero} put on a {colour} {clothing} and [ran|went] outside.",
        ask: "What did {hero} put on?",
        answer: "A {colour} {clothing}.",
      },
      {
        say: "With {friend} {hero.he} built a snowman. Its nose was a {food}.",
        ask: "What was the nose of the snowman?",
        answer: "A {food}.",
      },
      {
        say: "On its head they put a {colour2} {clothing2}.",
        ask: "What was on the head of the snowman?",
        answer: "A {colour2} {clothing2}.",
      },
      maybe("A {animal} [came by and looked|left its tracks in the snow|ate the nose]."),
      "When {hero.his} hands were cold, {hero.he} [went in and drank some {drink}|sat by the fire].",
      ending,
    ],
  },
  {
    topic: "[a picnic|a day at the {outside}|{hero} and {friend}]",
    steps: [
      {
        say: "{hero} and {friend} packed a basket with {food.plural}, {drink} and {few} {food2.plural}.",
        ask: "How many {food2.plural} were in the basket?",
        answer: "{Few}.",
      },
      {
        say: "They [went|walked] to the {outside} [and sat down in the grass|and looked for a good spot].",
        ask: "Where did they go?",
        answer: "To the {outside}.",
      },
      {
        oneOf: [
          {
            say: "But they had forgotten the {thing}.",
            ask: "What had they forgotten?",
            answer: "The {thing}.",
          },
          {
            say: "A {animal} [came|sat down beside them] and [got a piece of bread|looked hungry].",
            ask: "Which animal came?",
            answer: "A {animal}.",
          },
          "[The sun was warm|The birds sang|Nobody was in a hurry].",
        ],
      },
      "They ate [everything|until nothing was left|and talked], and then they [slept in the shade|played with a ball|counted the clouds].",
      ending,
    ],
  },
  {
    topic: "[a boat|a journey|{hero}]",
    steps: [
      {
        say: "{hero} built a [little|wooden|fine] boat and painted it {colour}.",
        ask: "What colour was the boat?",
        answer: "It was {colour}.",
      },
      {
        say: "{Hero.he} called it the {quality} {animal}.",
        ask: "What was the boat called?",
        answer: "The {quality} {animal}.",
      },
      maybe({
        say: "{Hero.his} {relative} made the sail.",
        ask: "Who made the sail?",
        answer: "{Hero.his} {relative}.",
      }),
      "On {day} {hero} put it on the water. [It swam|It went round and round|It did not sink].",
      {
        oneOf: [
          "The wind [pushed it|took it] to the other side, where {friend} [caught it|was waiting].",
          'A {animal2} came and looked. "[Do you want to be the captain|Come on board]?" asked {hero}.',
          "It went further and further, until it was only a small {colour} spot.",
        ],
      },
      ending,
    ],
  },
  {
    topic: "[a kite|flying a kite|{hero}]",
    steps: [
      "{hero} wanted to fly a {colour} kite, but there was no wind.",
      {
        say: '"Wait until {day}," said {hero.his} {relative}.',
        ask: "Until which day should {hero} wait?",
        answer: "Until {day}.",
      },
      "[So {hero} waited|{hero} looked at the sky every {dayTime}|It was hard to wait].",
      {
        say: "Then the wind came, and {hero} ran to the {outside} with {friend}.",
        ask: "Who ran to the {outside} with {hero}?",
        answer: "{friend}.",
      },
      "[Up and up went the kite|The kite flew over the trees|The kite danced in the sky], and a {animal} [looked up|ran after it].",
      ending,
    ],
  },
];
