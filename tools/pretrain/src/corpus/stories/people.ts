import { maybe, type Story } from "../story.js";
import { ending, opening } from "./opening.js";

/** Stories about people who help, learn, give and wait. */
export const peopleStories: readonly Story[] = [
  {
    topic: "[helping|{hero} and the {job}|a {job}]",
    steps: [
      opening,
      {
        say: "There {hero.he} met the {job}, who looked [tired|worried|sad].",
        ask: "Whom did {hero} meet?",
        answer: "The {job}.",
      },
      {
        say: '"[I have lost|I cannot find|Somebody took] my {colour} {thing}," said the {job}.',
        ask: "What did the {job} miss?",
        answer: "A {colour} {thing}.",
      },
      '["I will help you," said {hero}|"Let us look together," said {hero}|{hero} had time, so {hero.he} helped].',
      {
        say: "They looked for {few} hours and found it {spot}.",
        ask: "How many hours did they look?",
        answer: "{Few}.",
      },
      'The {job} [was very glad|said, "Thank you, {hero}"|shook {hero.his} hand].',
      ending,
    ],
  },
  {
    topic: "[learning|{hero} learns something|music]",
    steps: [
      {
        say: "{hero} wanted to learn to [play the flute|swim|whistle|ride|dance|read].",
        ask: "Who wanted to learn something?",
        answer: "{hero}.",
      },
      '["It is too hard," {hero.he} said at first|The first time it went badly|It was not easy].',
      {
        say: '{friend} said, "[Try again|Do not give up|Do it slowly]." So {hero} tried again every {day}.',
        ask: "On which day did {hero} try again?",
        answer: "Every {day}.",
      },
      maybe({
        say: "Even the {animal} [listened|watched|came to look].",
        ask: "Which animal was there?",
        answer: "The {animal}.",
      }),
      {
        say: "After {few} weeks {hero.he} [could do it|was quite good at it].",
        ask: "How many weeks did it take?",
        answer: "{Few}.",
      },
      '["You see?" said {friend}|{hero} was {feeling} and proud|"I did it!" called {hero}].',
    ],
  },
  {
    topic: "[a birthday|a present|{friend}'s birthday]",
    steps: [
      {
        say: "It was {friend}'s birthday, and {hero} [looked for|needed|wanted to make] a present.",
        ask: "Whose birthday was it?",
        answer: "It was {friend}'s birthday.",
      },
      "[{Hero.he} had no money|{Hero.he} thought and thought|The shops were closed].",
      {
        say: "[Then|In the end|At last] {hero.he} [took|found|made] a {colour} {treasure} and put it in a box.",
        ask: "What was in the box?",
        answer: "A {colour} {treasure}.",
      },
      maybe({
        say: "{Hero.his} {relative} tied a {colour2} ribbon around it.",
        ask: "What colour was the ribbon?",
        answer: "It was {colour2}.",
      }),
      'When {friend} opened it, {friend.he} [laughed|smiled|was silent for a moment]. "[It is lovely|Just what I wanted|I will keep it for ever]!" {friend.he} said.',
      ending,
    ],
  },
  {
    topic: "[a letter|a letter from {friend}|{hero}]",
    steps: [
      {
        say: "On {day} a letter came for {hero}. It was from {friend}.",
        ask: "Who had written the letter?",
        answer: "{friend}.",
      },
      {
        say: '"[Dear|My dear] {hero}," {friend.he} wrote, "I live near a {outside} now. [Here it is {weather}|The people here are kind|I have seen a {animal}]. Come and see me!"',
        ask: "Where does {friend} live now?",
        answer: "Near a {outside}.",
      },
      "{hero} [read it twice|was so glad|put the letter {spot}].",
      {
        say: "{Hero.he} packed a {thing}, {few} {food.plural} and a {colour} {clothing} and [left|set out].",
        ask: "How many {food.plural} did {hero} pack?",
        answer: "{Few}.",
      },
      "[The way was long|It took two days|The train was slow], but in the end they [sat together|were together] and [talked|laughed] all night.",
    ],
  },
  {
    topic: "[painting|a picture|{hero}]",
    steps: [
      {
        say: "{hero} painted a picture of a {animal}.",
        ask: "What did {hero} paint?",
        answer: "A {animal}.",
      },
      {
        say: "But there was only {colour} paint left, so {hero.he} made it {colour}.",
        ask: "What colour was the {animal} in the picture?",
        answer: "It was {colour}.",
      },
      '["I have never seen such a {animal}," said {friend}|{friend} looked at it and laughed|"Are you sure?" asked {friend}].',
      '["This one is special," said {hero}|"It is from another land," said {hero}|"It can sing, too," said {hero}].',
      maybe({
        say: "{Hero.his} {relative} put the picture {spot}.",
        ask: "Where did the {relative} put the picture?",
        answer: "{Spot}.",
      }),
      ending,
    ],
  },
  {
    topic: "[a friend|a new friend|{hero} and {friend}]",
    steps: [
      {
        say: "{hero} was new in the village and did not know anybody.",
        ask: "Who was new in the village?",
        answer: "{hero}.",
      },
      "[{Hero.he} sat alone on the steps|{Hero.he} walked up and down the street|{Hero.he} felt {feeling}].",
      {
        say: "Then {friend} came by with a {colour} {treasure}.",
        ask: "What did {friend} have?",
        answer: "A {colour} {treasure}.",
      },
      '"[Do you want to play|Who are you|Shall I show you the {place}]?" asked {friend}.',
      maybe({
        say: "{Hero.he} showed {friend} {hero.his} {few} {treasure2.plural}.",
        ask: "What did {hero} show?",
        answer: "{Few} {treasure2.plural}.",
      }),
      "[Soon they were friends|They played until it was dark|From then on they met every day].",
      ending,
    ],
  },
];
