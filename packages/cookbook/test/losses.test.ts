import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ServiceClient, type DatumLike, type LossFnType, type TrainingClient } from "tinker-ts";
import {
  anchor,
  candidateExample,
  cispo,
  composeLoss,
  consistency,
  crossEntropy,
  dro,
  elasticNet,
  entropy,
  entropyEstimate,
  gradientPenalty,
  importanceSampling,
  jensenShannon,
  klDivergence,
  klEstimate,
  l1,
  l2,
  orthogonality,
  outputMagnitude,
  pairedConsistency,
  ppo,
  type CandidateExample,
  type Term,
} from "@tinker-ts/cookbook/losses";

const targets = [
  [11, 42, 7, 99, 23],
  [5, 300, 12, 64],
];
const inputs = [
  [3, 11, 42, 7, 99],
  [8, 5, 300, 12],
];
const chosen: DatumLike[] = targets.map((tokens, index) => ({
  modelInput: inputs[index]!,
  lossFnInputs: { target_tokens: tokens },
}));
const elsewhere = targets.map((tokens) => tokens.map((_, at) => -1 - at / 2));

describe("losses on the embedded engine", () => {
  let folder: string;
  let service: ServiceClient;
  let candidates: CandidateExample[];

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "losses-"));
    vi.stubEnv("TINKER_TS_DATA_DIR", folder);
    service = new ServiceClient({ baseUrl: "local:" });
    const sampling = await service.createSamplingClient({ baseModel: "tinker-ts/sprout" });
    candidates = await Promise.all(
      targets.map(async (tokens) => {
        const { topkPromptLogprobs } = await sampling.sample({
          prompt: tokens,
          samplingParams: { maxTokens: 1 },
          includePromptLogprobs: true,
          topkPromptLogprobs: 4,
        });
        return candidateExample({ tokens, topk: topkPromptLogprobs! });
      }),
    );
  });

  afterAll(async () => {
    await service.close();
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true, force: true });
  });

  const create = (): Promise<TrainingClient> =>
    service.createLoraTrainingClient({ baseModel: "tinker-ts/sprout", rank: 8, seed: 3 });

  const logprobsAfterStep = async (
    pass: (training: TrainingClient) => PromiseLike<unknown>,
  ): Promise<number[]> => {
    const training = await create();
    await pass(training);
    await training.optimStep({ learningRate: 1e-2 });
    const { lossFnOutputs } = await training.forward(
      chosen.map((datum, index) => withInputs(index, { weights: targets[index]!.map(() => 0) })),
      "cross_entropy",
    );
    return lossFnOutputs.flatMap(({ logprobs }) => Array.from(logprobs!.data, Number));
  };

  const withInputs = (index: number, more: Record<string, number[]>): DatumLike => ({
    modelInput: inputs[index]!,
    lossFnInputs: { target_tokens: targets[index]!, ...more },
  });

  describe("built-in losses written as terms", () => {
    const advantages = targets.map((tokens) => tokens.map((_, at) => (at % 3) - 0.8));
    const policy = { logprobs: elsewhere, advantages };
    const cases: Record<string, [LossFnType, Term, (index: number) => Record<string, number[]>]> = {
      cross_entropy: [
        "cross_entropy",
        crossEntropy(),
        (index) => ({ weights: targets[index]!.map((_, at) => 0.5 + at) }),
      ],
      importance_sampling: ["importance_sampling", importanceSampling(policy), policyInputs],
      ppo: ["ppo", ppo(policy), policyInputs],
      cispo: ["cispo", cispo(policy), policyInputs],
      dro: ["dro", dro(policy), policyInputs],
    };

    function policyInputs(index: number): Record<string, number[]> {
      return { logprobs: elsewhere[index]!, advantages: advantages[index]! };
    }

    for (const [name, [lossFn, term, inputsOf]] of Object.entries(cases)) {
      it(`${name} trains the same weights either way`, async () => {
        const built = await logprobsAfterStep((training) =>
          training.forwardBackward(
            targets.map((_, index) => withInputs(index, inputsOf(index))),
            lossFn,
          ),
        );
        const composed = composeLoss({ base: term }).at(0);
        const own = await logprobsAfterStep((training) =>
          training.forwardBackwardCustom(
            targets.map((_, index) =>
              withInputs(index, lossFn === "cross_entropy" ? inputsOf(index) : {}),
            ),
            composed,
          ),
        );
        for (const [at, value] of built.entries()) expect(own[at]).toBeCloseTo(value, 4);
      });
    }
  });

  describe("every term moves the parameters in its direction", () => {
    const square = (values: Float64Array): { value: number; gradient: Float64Array } => ({
      value: values.reduce((sum, value) => sum + value * value, 0),
      gradient: values.map((value) => 2 * value),
    });
    const sameCandidates: DatumLike[] = inputs.map((tokens) => ({
      modelInput: tokens,
      lossFnInputs: { target_tokens: tokens.map(() => [40, 200, 350]) },
    }));
    const half = (): number[][] =>
      candidates.map(({ reference }) => Array.from(reference, (r) => r - 0.7));
    const exists = (): Uint8Array[] => candidates.map((example) => example.exists);
    const onChosen: Record<string, () => Term> = {
      l1: () => l1(),
      l2: () => l2(),
      elasticNet: () => elasticNet(),
      "klEstimate, k2": () => klEstimate({ reference: elsewhere }),
      "klEstimate, k3": () => klEstimate({ reference: elsewhere, estimator: "k3" }),
      entropyEstimate: () => entropyEstimate({ mode: "maximize", baseline: -3 }),
      anchor: () => anchor({ reference: elsewhere }),
      "consistency, mse": () => consistency({ pair: elsewhere }),
      "consistency, l1": () => consistency({ pair: elsewhere, metric: "l1" }),
      "consistency, cosine": () => consistency({ pair: elsewhere, metric: "cosine" }),
      gradientPenalty: () => gradientPenalty({ of: square }),
      outputMagnitude: () => outputMagnitude(),
    };
    const onCandidates: Record<string, () => Term> = {
      "klDivergence, forward": () => klDivergence({ reference: half(), exists: exists() }),
      "klDivergence, reverse": () =>
        klDivergence({ reference: half(), exists: exists(), direction: "reverse" }),
      jensenShannon: () => jensenShannon({ reference: half(), exists: exists() }),
      "entropy, minimize": () => entropy({ mode: "minimize", exists: exists() }),
      "entropy, maximize": () => entropy({ mode: "maximize", exists: exists() }),
      "consistency, kl": () => consistency({ pair: half(), exists: exists(), metric: "kl" }),
    };

    const falls = async (term: Term, data: readonly DatumLike[]): Promise<void> => {
      const loss = composeLoss({ terms: [{ name: "it", term }] });
      const training = await create();
      const values: number[] = [];
      for (let step = 0; step < 4; step++) {
        const pass = training.forwardBackwardCustom(data, loss.at(step));
        values.push((await pass).metrics["reg/it/value"]!);
        await training.optimStep({ learningRate: 2e-3 });
      }
      expect(values.at(-1)).toBeLessThan(values[0]!);
    };

    for (const [name, term] of Object.entries(onChosen)) {
      it(`${name} falls`, () => falls(term(), chosen));
    }
    for (const [name, term] of Object.entries(onCandidates)) {
      it(`${name} falls`, () =>
        falls(
          term(),
          candidates.map(({ datum }) => datum),
        ));
    }
    it("orthogonality falls", () => falls(orthogonality(), sameCandidates));
    it("pairedConsistency falls", () =>
      falls(pairedConsistency({ pairs: [[0, 1]] }), [
        { modelInput: [3, 11, 42], lossFnInputs: { target_tokens: [11, 42, 7] } },
        { modelInput: [9, 60, 42], lossFnInputs: { target_tokens: [11, 42, 7] } },
      ]));
  });

  it("adds a regularizer beside a built-in loss, as if both were one", async () => {
    const data = chosen.map((_, index) =>
      withInputs(index, { weights: targets[index]!.map(() => 1) }),
    );
    const terms = [{ name: "pull", term: anchor({ reference: elsewhere }), weight: 3 }];
    const beside = await logprobsAfterStep(async (training) => {
      await training.forwardBackward(data, "cross_entropy");
      await training.forwardBackwardCustom(data, composeLoss({ terms }).at(0));
    });
    const together = await logprobsAfterStep((training) =>
      training.forwardBackwardCustom(data, composeLoss({ base: crossEntropy(), terms }).at(0)),
    );
    for (const [at, value] of together.entries()) expect(beside[at]).toBeCloseTo(value, 4);
  });
});
