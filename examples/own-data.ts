// Trains on rows of a form of one's own, asks the model in between, is stopped, and goes on as if it had not been.
import assert from "node:assert/strict";
import { loadConversations, splitTest } from "@tinker-ts/cookbook/data";
import { evaluate, exactMatch, taskFromConversations } from "@tinker-ts/cookbook/evaluation";
import { train } from "@tinker-ts/cookbook/supervised";
import { chatTemplateRenderer } from "@tinker-ts/cookbook/renderers";
import { connect } from "./support/connect.js";
import { gardenFiles } from "./support/garden-files.js";
import { gardenTalk } from "./support/garden-talk.js";

const { service, baseModel: model } = await connect();
const { folder } = await gardenFiles(0);

// 1. Rows as they are: here from a program, in other cases from JSONL, CSV or Parquet files.
const rows = gardenTalk()
  .lesson(960)
  .map(({ question, answer }) => ({ english: question, garden: answer }));
const { conversations } = await loadConversations(rows, {
  map: (row: { english: string; garden: string }) => ({
    messages: [
      { role: "user", content: row.english },
      { role: "assistant", content: row.garden },
    ],
  }),
});
const { train: lessons, test: exam } = splitTest(conversations, 32);

// 2. A run that is stopped after ten steps, as if by Ctrl-C, and started again.
const stop = new AbortController();
const options = {
  service,
  model,
  data: lessons,
  evalData: exam,
  batchSize: 16,
  learningRate: "auto" as const,
  folder: `${folder}/run`,
};
const first = await train({
  ...options,
  signal: stop.signal,
  onProgress: ({ step }) => step === 10 && stop.abort(),
});
console.log(`${first.status} at step ${first.step} of ${first.totalSteps}`);
const second = await train(options);
console.log(
  `${second.status}: loss on what was kept back ${second.evaluation["test/nll"]?.toFixed(3)}`,
);

// 3. What the model says now, judged word for word.
const modelPath = second.checkpoint!.samplerPath!;
const sampling = await service.createSamplingClient({ modelPath });
const renderer = await chatTemplateRenderer(await sampling.getTokenizer());
const task = taskFromConversations("garden", exam, exactMatch());
const { score, interval } = await evaluate({ task, sampling, renderer, maxTokens: 32 });
const percent = (share: number): string => `${Math.round(share * 100)} %`;
console.log(`right: ${percent(score)} (95 %: ${interval.map(percent).join(" to ")})`);
await service.close();

assert.equal(first.status, "interrupted");
assert.equal(second.status, "completed");
assert.ok(score >= 0.5, "most sentences are translated word for word");
