import { ApiFailure } from "../../data/api.js";
import {
  complete,
  lacksTemplate,
  type AnswerToken,
  type ChatMessage,
} from "../../data/completions.js";
import type { ColumnState } from "./column.js";

/** Settings of a request. */
export interface PlaygroundSettings {
  readonly mode: "chat" | "complete";
  /** The system prompt. */
  readonly start: readonly ChatMessage[];
  readonly temperature: number;
  readonly maxTokens: number;
  readonly seed: number | null;
  readonly samples: number;
  readonly stop: readonly string[];
}

/** One of the answers to a prompt. */
export interface Sample {
  readonly text: string;
  /** Whether some of the text is reasoning, and whether some is an answer. */
  readonly hasThought: boolean;
  readonly hasAnswer: boolean;
  readonly tokens: readonly AnswerToken[];
  readonly finish: string | null;
}

/** An answer of one column, so far. */
export interface Answer {
  readonly prompt: string;
  /** The prompt as the model read it; empty before the first token. */
  readonly promptTokens: readonly number[];
  readonly samples: readonly Sample[];
  readonly isRunning: boolean;
  readonly abort: AbortController;
  /** The weights, as reported by the server. */
  readonly model: string | null;
  readonly startedAt: number;
  readonly firstAt: number | null;
  readonly lastAt: number | null;
  readonly failure: string | null;
  /** A note beside the answer. */
  readonly note: string | null;
}

const noSample: Sample = {
  text: "",
  hasThought: false,
  hasAnswer: false,
  tokens: [],
  finish: null,
};

/** Sends the prompt to one column; its answer is streamed. */
export async function ask(
  column: ColumnState,
  prompt: string,
  settings: PlaygroundSettings,
): Promise<void> {
  const { mode, start, ...rest } = settings;
  const abort = new AbortController();
  const before = column.answer.value;
  if (before && !before.failure && before.samples[0] && mode === "chat") {
    column.turns.value = [...column.turns.value, before];
  } else if (mode === "complete") column.turns.value = [];
  let answer: Answer = {
    prompt,
    promptTokens: [],
    samples: [],
    isRunning: true,
    abort,
    model: null,
    startedAt: Date.now(),
    firstAt: null,
    lastAt: null,
    failure: null,
    note: null,
  };
  const put = (change: Partial<Answer>): void => {
    answer = { ...answer, ...change };
    column.answer.value = answer;
  };
  put({});
  // Tokens come faster than a screen is drawn.
  let samples: Sample[] = [];
  let isPending = false;
  const show = (): void => {
    isPending = false;
    put({ samples: [...samples] });
  };
  const run = (input: { messages: readonly ChatMessage[] } | { prompt: string }): Promise<void> =>
    complete(
      { model: column.weights, input, ...rest },
      (part) => {
        const now = Date.now();
        const old = samples[part.index] ?? noSample;
        const isText = part.text.trim() !== "";
        samples[part.index] = {
          text: old.text + part.text,
          hasThought: old.hasThought || (isText && part.kind === "thinking"),
          hasAnswer: old.hasAnswer || (isText && part.kind === "answer"),
          tokens: [...old.tokens, ...part.tokens],
          finish: part.finish ?? old.finish,
        };
        answer = {
          ...answer,
          model: part.model,
          lastAt: now,
          firstAt: answer.firstAt ?? now,
          promptTokens: part.promptTokens ?? answer.promptTokens,
        };
        if (isPending) return;
        isPending = true;
        requestAnimationFrame(show);
      },
      abort.signal,
    );
  const messages: readonly ChatMessage[] = [
    ...start,
    ...column.turns.value.flatMap((turn): ChatMessage[] => [
      { role: "user", content: turn.prompt },
      { role: "assistant", content: turn.samples[0]?.text ?? "" },
    ]),
    { role: "user", content: prompt },
  ];
  try {
    await run(mode === "chat" ? { messages } : { prompt }).catch((error: unknown) => {
      if (mode !== "chat" || !lacksTemplate(error)) throw error;
      samples = [];
      put({ note: "This model has no chat template; it continues the text instead." });
      return run({ prompt });
    });
    put({ samples: [...samples], isRunning: false });
  } catch (error) {
    if (abort.signal.aborted) put({ samples: [...samples], isRunning: false, note: "Stopped." });
    else {
      const failure = error instanceof ApiFailure ? error.message : String(error);
      put({ samples: [...samples], isRunning: false, failure });
    }
  }
}
