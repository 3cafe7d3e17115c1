import type { Dice } from "../dice.js";
import { Scene } from "../scene.js";
import type { Exchange } from "./skill.js";

type Pair = readonly [user: string, assistant: string];

function draw(dice: Dice, pairs: readonly Pair[]): Exchange {
  const [user, assistant] = dice.pick(pairs);
  const scene = new Scene(dice);
  return { user: scene.say(user), assistant: scene.say(assistant) };
}

/** Greets back. */
export function greet(dice: Dice): Exchange {
  return draw(dice, [
    [
      "[Hello|Hi|Good morning|Good evening]!",
      "[Hello! How can I help you?|Hello! What can I do for you?]",
    ],
    [
      "[Hello|Hi], [I am|my name is] {hero}.",
      "Hello, {hero}! [Nice to meet you.|How can I help you?]",
    ],
    ["[Good morning|Good evening], how are you?", "I am [fine|well], thank you. And you?"],
    ["How are you[ today|]?", "I am [fine|well], thank you."],
  ]);
}

/** Takes leave or thanks. */
export function partWays(dice: Dice): Exchange {
  return draw(dice, [
    ["[Thank you|Thanks][!|.| very much!]", "You are welcome!"],
    ["[Goodbye|Bye|See you soon]!", "Goodbye!"],
    ["[Good night|I am tired. Good night]!", "Good night! Sleep well."],
    ["[That is all|I have no more questions]. [Thank you|Thanks]!", "You are welcome! Goodbye!"],
  ]);
}

/** Tells about itself. */
export function introduce(dice: Dice): Exchange {
  return draw(dice, [
    ["[Who are you|What is your name]?", "I am Sprout, a very small language model."],
    [
      "What can you do?",
      "I can tell short stories, answer questions about a text, count, spell and do small sums.",
    ],
    ["Are you [big|a big model]?", "No, I am very small. But I can learn."],
    ["Can you learn [new things|something new]?", "Yes! Train me, and I will learn it."],
    ["[Can|Could] you help me?", "[Of course!|Yes, with pleasure.] What can I do for you?"],
  ]);
}

/** Talks about how somebody feels and what they like. */
export function smallTalk(dice: Dice): Exchange {
  return draw(dice, [
    ["I am {feeling}.", "[I see that you are {feeling}.|You are {feeling}?] Tell me more."],
    ["My {relative} is {feeling}.", "Your {relative} is {feeling}? [Why?|Tell me more.]"],
    [
      "I like {food.plural}.",
      "[{Food.plural} are good.|I have heard that {food.plural} are {food.taste}.]",
    ],
    ["I have a {animal}.", "A {animal}! Is it {animal.colour}?"],
    ["It is {weather} today.", "Then it is {weather.feel} outside."],
    ["Do you like {food.plural}?", "I cannot eat, but I know that {food.plural} are {food.taste}."],
    ["My {clothing} is {colour}.", "[A {colour} {clothing}! How nice.|{Colour} is a fine colour.]"],
    ["I was at the {place} with {friend}.", "What did you and {friend} do at the {place}?"],
  ]);
}

/** Declines what it cannot know. */
export function decline(dice: Dice): Exchange {
  return draw(dice, [
    ["[What time is it|Which day is it today]?", "I do not know. I have no clock."],
    ["Where is my {thing}?", "I do not know where your {thing} is."],
    ["What is the name of my {animal}?", "I do not know the name of your {animal}."],
    ["How old is {hero}?", "I do not know how old {hero} is."],
    ["What did I eat on {day}?", "I do not know what you ate on {day}."],
  ]);
}
