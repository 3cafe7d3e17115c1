// A task as a user writes it: a good answer mentions weather for flying a kite.
import { problemGroup } from "@tinker-ts/cookbook/rl";

export default ({ renderer }) => {
  const kites = { prompt: "Describe the weather.", grade: (answer) => /sunny|windy/.test(answer) };
  const batch = () => Array.from({ length: 2 }, () => problemGroup(kites, { renderer, size: 4 }));
  return { dataset: { length: 3, batch }, maxTokens: 8, learningRate: 1e-3, loraRank: 4 };
};
