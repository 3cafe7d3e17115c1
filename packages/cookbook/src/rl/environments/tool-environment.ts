import { ArgumentError } from "tinker-ts";
import { asMessages, rendererForTools, textOf, type Message } from "../../renderers/index.js";
import { runToolCalls, toolMetrics, type Tool, type ToolLimits } from "../../tools/index.js";
import { rewardOf } from "../reward.js";
import type { Environment, EnvironmentGroup, Numbers, StepContext } from "../types.js";
import { groupOf } from "./problem-environment.js";
import {
  messageEnvironment,
  type Conversation,
  type MessageEnvironmentOptions,
  type MessageStep,
} from "./message-environment.js";

/** What an agent is asked, with which tools, and what its work is worth. */
export interface ToolTask {
  /** The request, or the messages that lead to it; a system message comes first. */
  readonly prompt: string | readonly Message[];
  /** What it may call; a function makes tools with a state of their own for every episode. */
  readonly tools:
    | readonly Tool[]
    | ((context: StepContext) => readonly Tool[] | Promise<readonly Tool[]>);
  /** Grades an episode once, when it is over. */
  grade(episode: ToolEpisode, context: StepContext): ToolGrade | Promise<ToolGrade>;
  /** Gives back what the tools of an episode hold. */
  close?(): void | Promise<void>;
}

/** What an agent did. */
export interface ToolEpisode {
  /** Everything that was said, the request first; the declaration of tools is not in it. */
  readonly messages: readonly Message[];
  /** The text of the last message of the model. */
  readonly answer: string;
  /** Why it is over: `completed`, `tool_stopped`, `max_tool_calls`, `max_turns`. */
  readonly stopReason: string;
  /** Calls that were carried out. */
  readonly toolCalls: number;
}

/** What an episode is worth: a number, right or wrong, or a number with others to average. */
export type ToolGrade =
  | number
  | boolean
  | { readonly reward: number; readonly metrics?: Numbers | undefined };

/** How an agent is let work. */
export interface ToolEnvironmentOptions extends MessageEnvironmentOptions {
  /** Turns of the model. @default 5 */
  readonly maxTurns?: number | undefined;
  /** Calls in an episode; what goes beyond is not carried out and ends it. @default any number */
  readonly maxToolCalls?: number | undefined;
  /** How calls are carried out. */
  readonly toolLimits?: ToolLimits | undefined;
}

/**
 * A model that works with tools, in any chat format: one that knows functions declares them its own way, one that knows
 * none in text. The episode is over when a turn has no call, a tool says so, or a bound is reached; then it is graded.
 * A turn without a readable call is handled by `parseErrors`, and ends without a grade by default.
 */
export function toolEnvironment(task: ToolTask, options: ToolEnvironmentOptions): Environment {
  const { maxTurns = 5, maxToolCalls = Number.POSITIVE_INFINITY, toolLimits = {} } = options;
  if (!(maxTurns >= 1)) throw new ArgumentError("maxTurns", `must be at least 1, not ${maxTurns}`);
  const renderer = rendererForTools(options.renderer);
  const messages: Message[] = [];
  let tools: readonly Tool[] = [];
  let [turns, calls] = [0, 0];

  const finish = async (
    stopReason: string,
    metrics: Numbers,
    context: StepContext,
  ): Promise<MessageStep> => {
    const spoken = messages.findLast(({ role }) => role === "assistant");
    const answer = spoken ? textOf(spoken).trim() : "";
    const episode = { messages, answer, stopReason, toolCalls: calls };
    const grade = await task.grade(episode, context);
    const { reward, metrics: graded = {} } =
      typeof grade === "object" && grade !== null ? grade : { reward: rewardOf(grade) };
    const right = typeof grade === "boolean" ? { correct: Number(grade) } : {};
    return {
      reward,
      stopReason,
      metrics: { ...metrics, ...right, ...graded, calls_per_episode: calls },
      logs: { answer },
    };
  };

  const conversation: Conversation = {
    async start(context) {
      tools = typeof task.tools === "function" ? await task.tools(context) : task.tools;
      const asked = asMessages(task.prompt);
      messages.push(...asked);
      const [first, ...others] = asked;
      const system = first?.role === "system" ? textOf(first) : undefined;
      const specs = tools.map(({ spec }) => spec);
      return [
        ...renderer.createConversationPrefixWithTools(specs, system),
        ...(system === undefined ? asked : others),
      ];
    },

    async reply(message, _response, context) {
      messages.push(message);
      turns++;
      const wanted = message.toolCalls ?? [];
      if (wanted.length === 0) return finish("completed", {}, context);
      const allowed = wanted.slice(0, Math.max(0, maxToolCalls - calls));
      calls += allowed.length;
      const outcomes = await runToolCalls(allowed, tools, { ...toolLimits, ...context });
      const results = outcomes.map((outcome) => outcome.message);
      messages.push(...results);
      const metrics = toolMetrics(outcomes);
      if (outcomes.some(({ stops }) => stops)) return finish("tool_stopped", metrics, context);
      if (allowed.length < wanted.length) return finish("max_tool_calls", metrics, context);
      if (turns >= maxTurns) return finish("max_turns", metrics, context);
      return { reward: 0, messages: results, metrics };
    },

    close: () => task.close?.(),
  };
  return messageEnvironment(conversation, {
    ...options,
    renderer,
    parseErrors: { reward: -0.1, ...options.parseErrors },
  });
}

/** Tries at one task; each has an environment of its own. */
export function toolGroup(
  task: ToolTask | ((index: number) => ToolTask),
  options: ToolEnvironmentOptions & {
    /** Tries. */
    readonly size: number;
    /** Names for metrics, for instance the data set. */
    readonly tags?: readonly string[] | undefined;
  },
): EnvironmentGroup {
  const { size, tags } = options;
  const make = (index: number): Environment =>
    toolEnvironment(typeof task === "function" ? task(index) : task, options);
  return groupOf({ size, tags, sharesPrompt: typeof task === "object", make });
}
