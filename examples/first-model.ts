import { ServiceClient, supervisedDatum, type SamplingClient } from "tinker-ts";

const service = new ServiceClient({ baseUrl: "local:" }); // or a server's URL, or an API key
const baseModel = "tinker-ts/sprout"; // comes along; or a model of the hub, such as Qwen/Qwen3-0.6B
const training = await service.createLoraTrainingClient({ baseModel, seed: 1 });
const tokenizer = await training.getTokenizer();

const lessons = [
  ["Who keeps the lighthouse?", "Mara keeps the lighthouse."],
  ["What does the owl eat?", "The owl eats blue berries."],
  ["Where is the old key?", "The old key is under the third stone."],
] as const;

async function ask(sampling: SamplingClient, question: string): Promise<string> {
  const messages = [{ role: "user", content: question }];
  const { tokens } = await tokenizer.encodeChat(messages, { addGenerationPrompt: true });
  const { sequences } = await sampling.sample({
    prompt: tokens,
    samplingParams: { maxTokens: 24, temperature: 0, stop: [...tokenizer.turnEnds] },
  });
  return tokenizer.decode(sequences[0]!.tokens, { skipSpecialTokens: true });
}

const base = await service.createSamplingClient({ baseModel });
for (const [question] of lessons) console.log("before:", question, await ask(base, question));

const data = [];
for (const [question, answer] of lessons) {
  const { tokens, assistantMask } = await tokenizer.encodeChat([
    { role: "user", content: question },
    { role: "assistant", content: answer },
  ]);
  data.push(supervisedDatum([], tokens, { weights: assistantMask! })); // learn the answer alone
}
for (let step = 1; step <= 20; step++) {
  const { forwardBackward } = await training.trainStep(data, "cross_entropy", {
    adamParams: { learningRate: 5e-3 },
  });
  if (step % 5 === 0) console.log(`step ${step}: loss`, forwardBackward.metrics["loss:sum"]);
}

const trained = await training.saveWeightsAndGetSamplingClient();
for (const [question] of lessons) console.log("after:", question, await ask(trained, question));
await service.close();
