import type { BaseModel, Datum, Snapshot } from "@tinker-ts/engine";
import type { Exchange, Task } from "../../../examples/support/task.js";
import type { Conversation } from "../src/conversation.js";

/** What supervised training made of a model. */
export interface Learned {
  /** Of the exam's questions, the part that the most probable answer gets right. */
  readonly before: number;
  readonly after: number;
  /** Time of training alone. */
  readonly trainingMs: number;
}

/** How supervised training goes; the same as in `examples/quickstart.ts`. */
const recipe = { rank: 32, steps: 110, batchSize: 32, learningRate: 5e-3 };

/** Teaches a task with a LoRA adapter. */
export async function learnByExample(
  model: BaseModel,
  conversation: Conversation,
  task: Task,
  seed: number,
): Promise<Learned> {
  const { rank, steps, batchSize, learningRate } = recipe;
  const before = await examine(conversation, task.exam);
  await using adapter = await model.createAdapter({ rank, seed });
  const startMs = performance.now();
  for (let step = 0; step < steps; step++) {
    const data = await Promise.all(
      task.lesson(batchSize).map((exchange) => toDatum(conversation, exchange)),
    );
    const pass = adapter.forwardBackward(data, { lossFn: "cross_entropy" });
    const stepped = adapter.optimStep({ learningRate: learningRate * (1 - step / steps) });
    await Promise.all([pass, stepped]);
  }
  const trainingMs = performance.now() - startMs;
  await using snapshot = await adapter.snapshot();
  return { before, after: await examine(conversation, task.exam, snapshot), trainingMs };
}

/** Of some questions, the part that the most probable answer gets right. */
export async function examine(
  conversation: Conversation,
  exam: readonly Exchange[],
  adapter?: Snapshot,
): Promise<number> {
  const options = adapter === undefined ? {} : { adapter };
  const right = await Promise.all(
    exam.map(
      async ({ question, answer }) => (await conversation.say(question, options)) === answer,
    ),
  );
  return right.filter(Boolean).length / exam.length;
}

/** Every token predicts the next, and only those of the answer count. */
async function toDatum(conversation: Conversation, exchange: Exchange): Promise<Datum> {
  const prompt = await conversation.prompt(exchange.question);
  const answer = conversation.answer(exchange.answer);
  const all = Int32Array.of(...prompt, ...answer);
  const shape = [all.length - 1];
  return {
    tokens: all.subarray(0, -1),
    inputs: {
      target_tokens: { data: all.subarray(1), shape },
      weights: { data: new Float32Array(all.length - 1).fill(1, prompt.length - 1), shape },
    },
  };
}
