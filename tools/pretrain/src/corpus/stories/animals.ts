import { maybe, type Story } from "../story.js";
import { ending, opening } from "./opening.js";

/** Stories in which animals act or speak. */
export const animalStories: readonly Story[] = [
  {
    topic: "[a lost {animal.young}|a {animal.young}|a {animal} and its {animal.young}]",
    steps: [
      opening,
      {
        say: "[There|Under a tree|Near the path] {hero.he} heard a [soft|thin|sad] sound. It was a little {animal.young}.",
        ask: "What did {hero} hear?",
        answer: "A little {animal.young}.",
      },
      '["Are you lost?" asked {hero}|"Where is your mother?" asked {hero}|It was all alone and very {feeling}].',
      "{Hero.he} [gave it some water|put it in {hero.his} {colour} {clothing}|sat down beside it|looked for its mother].",
      {
        oneOf: [
          {
            say: "[Then|After a while] a big {animal} came out of the [grass|trees|hedge]. It was the mother.",
            ask: "Who came in the end?",
            answer: "The mother.",
          },
          {
            say: "{hero} took it home, and {hero.his} {relative} knew what to do.",
            ask: "Who knew what to do?",
            answer: "{Hero.his} {relative}.",
          },
        ],
      },
      '["{Animal.sound}!" said the {animal.young}|The {animal.young} was not afraid any more|Everybody was glad].',
      ending,
    ],
  },
  {
    topic: "[a {animal} and a {animal2}|a {animal.trait} {animal}|two animals]",
    steps: [
      {
        say: "A {animal.trait} {animal} and a {animal2.trait} {animal2} met [on a bridge|at the {place}|on a narrow path].",
        ask: "Whom did the {animal} meet?",
        answer: "A {animal2}.",
      },
      {
        say: '"[Where are you going|What do you carry]?" asked the {animal}. "[To the {place2}|Only some {animal2.food}|That is my secret]," said the {animal2}.',
        ask: "Who asked the question?",
        answer: "The {animal}.",
      },
      "[They walked on together|They sat down and talked|The {animal} laughed, but the {animal2} did not].",
      {
        oneOf: [
          "Soon it [began to rain|grew dark], and they [hid under a big leaf|looked for a dry place].",
          "Then they came to a river. The {animal} could not cross it, so the {animal2} [helped|showed the way].",
          {
            say: "Then they found {few} {food.plural} and shared them.",
            ask: "What did the two animals find?",
            answer: "{Few} {food.plural}.",
          },
        ],
      },
      {
        oneOf: [
          '"[You are a good friend|Two are better than one|I was wrong about you]," said the {animal}.',
          "From that day on they [met every {day}|were friends|shared their food].",
          '"{Animal2.sound}," said the {animal2}, and that meant thank you.',
        ],
      },
    ],
  },
  {
    topic: "[a race|a {animal} and a {animal2}|who is faster]",
    steps: [
      {
        say: 'The {animal} said to the {animal2}, "I am faster than you. Let us run to the {outside}!"',
        ask: "Where did they want to run?",
        answer: "To the {outside}.",
      },
      "The {animal2} [thought for a moment|looked at its {animal2.legs} feet|smiled] and said yes.",
      {
        say: "The {animal3} [counted to three|gave the sign], and [off they went|they began].",
        ask: "Who gave the sign?",
        answer: "The {animal3}.",
      },
      {
        oneOf: [
          "[Half way there|Near the {outside2}] the {animal} [lay down to sleep|stopped to eat some {animal.food}].",
          "The {animal} ran and ran and did not look where it went.",
          "It was hot, and the road was long.",
        ],
      },
      {
        oneOf: [
          {
            say: "So the {animal2} came to the {outside} first.",
            ask: "Who won?",
            answer: "The {animal2}.",
          },
          {
            say: "So the {animal} came to the {outside} first, [but only just|and was very proud].",
            ask: "Who won?",
            answer: "The {animal}.",
          },
        ],
      },
      maybe(
        "[The others clapped|Everybody cheered|All the animals had a feast with {food.plural}].",
      ),
    ],
  },
  {
    topic: "[a {animal} at night|a strange sound|{hero} and the {animal}]",
    steps: [
      {
        say: "In the middle of the night {hero} [woke up|opened {hero.his} eyes]. There was a sound {spot}.",
        ask: "Where did the sound come from?",
        answer: "It came from {spot}.",
      },
      '[{Hero.he} was a little afraid|"Who is there?" {hero.he} called|It was very dark].',
      {
        say: "{Hero.he} took {hero.his} {thing} and [went to look|tiptoed through the room].",
        ask: "What did {hero} take along?",
        answer: "{Hero.his} {thing}.",
      },
      {
        say: "And what did {hero.he} see? A {quality} {colour} {animal}!",
        ask: "What did {hero} see?",
        answer: "A {quality} {colour} {animal}.",
      },
      '["{Animal.sound}," it said|It looked at {hero.him} with big eyes|It was as surprised as {hero.he} was].',
      "{hero} [opened the door|gave it some {animal.food}|laughed], and it [ran away|lay down to sleep|went back to its {animal.home}].",
      ending,
    ],
  },
  {
    topic: "[a new pet|a {animal} for {hero}|{hero}]",
    steps: [
      "{hero} had always wanted a {animal}.",
      {
        say: "On {hero.his} birthday {hero.his} {relative} came with a [big|wooden|round] box.",
        ask: "Who came with a box?",
        answer: "{Hero.his} {relative}.",
      },
      "[Something moved in it|It was warm and it moved|There were holes in it].",
      {
        say: 'It was a little {animal.young}! "I will call it {friend}," said {hero}.',
        ask: "What did {hero} call the {animal.young}?",
        answer: "{friend}.",
      },
      {
        say: "{friend} liked to [sleep|sit|hide] {spot} and ate a lot of {animal.food}.",
        ask: "Where did {friend} like to be?",
        answer: "{Spot}.",
      },
      maybe(
        "When {hero} [sang|came home|was sad], {friend} [always came|said {animal.sound}|sat beside {hero.him}].",
      ),
      ending,
    ],
  },
];
