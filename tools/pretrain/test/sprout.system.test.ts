import { embeddedModelId, Engine, type BaseModel } from "@tinker-ts/engine";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { gardenTalk } from "../../../examples/support/garden-talk.js";
import { kiteWeather } from "../../../examples/support/kite-weather.js";
import { examine } from "../bench/learn-by-example.js";
import { rewardOf } from "../bench/learn-by-reward.js";
import { Conversation } from "../src/conversation.js";

vi.setConfig({ testTimeout: 60_000 });

describe("tinker-ts/sprout", () => {
  let engine: Engine;
  let model: BaseModel;
  let conversation: Conversation;

  beforeAll(async () => {
    engine = await Engine.create({ threads: 2 });
    model = await engine.loadModel(embeddedModelId);
    conversation = await Conversation.with(model);
  });
  afterAll(async () => {
    await engine.close();
  });

  it("reads and writes any text", () => {
    const { tokenizer } = conversation;
    for (const text of ["The fox sat in the garden.", "naïve 日本語 🌱\n\t{}", " 12 + 7"]) {
      expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
    }
    expect(tokenizer.encode(" garden")).toHaveLength(1);
  });

  it.each([
    ["Hello!", "Hello! What can I do for you?"],
    ["Thank you!", "You are welcome!"],
    ["Who are you?", "I am Sprout, a very small language model."],
    ["Can you learn new things?", "Yes! Train me, and I will learn it."],
    ["What does a baker do?", "A baker bakes bread."],
    ["What time is it?", "I do not know. I have no clock."],
    ["Repeat after me: 50", "50"],
  ])("answers %j", async (question, answer) => {
    const [sample] = await conversation.ask(question);
    expect(conversation.read(sample?.tokens ?? [])).toBe(answer);
    expect(sample?.tokens.at(-1)).toBe(model.config.eosTokenIds[0]);
  });

  it("tells stories of whole sentences and ends them", async () => {
    const samples = await conversation.ask("Tell me a story.", { temperature: 0.7, numSamples: 8 });
    for (const sample of samples) {
      expect(sample.tokens.at(-1)).toBe(model.config.eosTokenIds[0]);
      expect(conversation.read(sample.tokens)).toMatch(/^[A-Z"].{80,}[.!?"]$/s);
    }
  });

  it("does not know Garden Talk", async () => {
    expect(await examine(conversation, gardenTalk().exam)).toBeLessThanOrEqual(0.1);
  });

  it("tells of kite weather now and then, so that there is something to reward", async () => {
    const good = await rewardOf(conversation, kiteWeather().draw(32));
    expect(good).toBeGreaterThan(0.1);
    expect(good).toBeLessThan(0.5);
  });
});
