import { seededRandom } from "../data/index.js";
import {
  rendererForTools,
  withTextTools,
  type Message,
  type ToolSpec,
} from "../renderers/index.js";
import { toolGroup, type EnvironmentGroup } from "../rl/index.js";
import { defineTool, type Tool } from "../tools/index.js";
import { learnByRewards } from "./by-rewards.js";
import { examine, examSize, openSampler, percent } from "./exam.js";
import type { Recipe, RecipeContext } from "./recipe.js";

const maxTokens = 64;
/** Of the examples that show the form of a call; the others answer out of their heads, and wrongly. */
const shareOfCalls = 0.3;

/** Products that a small model cannot know, and a tool that does. */
export const recipe: Recipe = {
  name: "calculator",
  summary: "Learns to ask a calculator instead of guessing",
  teaches:
    "An agent with a tool: declaration, call, result and answer are one episode, and only the answer is graded. " +
    "A few examples show how a call looks, most of them answer out of their heads; that asking pays is found by rewards alone.",
  async run(given) {
    const context = { ...given, renderer: plainTools(given) };
    const { seed, say, signal } = context;
    const exam = (): EnvironmentGroup[] => products(context, examSize(context, 32), 2, -1);
    const untaught = await examine(await openSampler(context), exam(), { maxTokens, seed, signal });
    const { before, after, samplerPath } = await learnByRewards(context, {
      name: "calculator",
      examples: { conversations: examples(context, 768), steps: 100 },
      steps: 10,
      batch: (step) => products(context, 8, 8, step),
      exam,
      maxTokens,
      learningRate: 1e-3,
      removeConstantRewardGroups: true,
      onBefore: (shown) =>
        say(`After the examples ${percent(shown.rate("correct"))} of new products are right.`),
    });
    return {
      samplerPath,
      checks: [
        { what: "right without anything", value: untaught.rate("correct"), atMost: 0.2 },
        { what: "right after the examples", value: before.rate("correct") },
        { what: "right after", value: after.rate("correct"), atLeast: 0.8 },
        { what: "calls an episode", value: after.rate("calls_per_episode"), unit: "number" },
      ],
    };
  },
};

const multiply: Tool = defineTool({
  name: "multiply",
  description: "Multiplies two numbers.",
  parameters: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  run: ({ a, b }) => String(Number(a) * Number(b)),
});

/** A small model has little room, so tools are declared in a line; formats with a way of their own keep it. */
function plainTools({ renderer }: RecipeContext): RecipeContext["renderer"] {
  const known = rendererForTools(renderer);
  if (known === renderer) return renderer;
  const declare = (tools: readonly ToolSpec[]): string =>
    `Tools: ${tools.map(({ name }) => name).join(", ")}`;
  return withTextTools(renderer, { declare });
}

const question = (a: number, b: number): string => `What is ${a} times ${b}?`;

function drawFactors(random: () => number): [number, number] {
  return [11 + Math.floor(random() * 89), 11 + Math.floor(random() * 89)];
}

/** Groups of tries at some products. */
function products(
  { renderer, seed }: RecipeContext,
  count: number,
  size: number,
  batch: number,
): EnvironmentGroup[] {
  const random = seededRandom(seed, batch);
  return Array.from({ length: count }, () => {
    const [a, b] = drawFactors(random);
    return toolGroup(
      {
        prompt: question(a, b),
        tools: [multiply],
        grade: ({ answer }) => answer === String(a * b),
      },
      { renderer, size, maxTurns: 2 },
    );
  });
}

/** Some ask the tool, most guess. */
function examples({ renderer, seed }: RecipeContext, count: number): { messages: Message[] }[] {
  const random = seededRandom(seed, 11);
  return Array.from({ length: count }, () => {
    const [a, b] = drawFactors(random);
    const messages: Message[] = [
      ...renderer.createConversationPrefixWithTools([multiply.spec]),
      { role: "user", content: question(a, b) },
    ];
    if (random() >= shareOfCalls) {
      const guess = String(Math.round(a * b * (0.5 + random())));
      return { messages: [...messages, { role: "assistant", content: guess }] };
    }
    const args = `{"a": ${a}, "b": ${b}}`;
    const call = { id: null, function: { name: "multiply", arguments: args } };
    return {
      messages: [
        ...messages,
        { role: "assistant", content: "", toolCalls: [call] },
        { role: "tool", name: "multiply", content: String(a * b) },
        { role: "assistant", content: String(a * b) },
      ],
    };
  });
}
