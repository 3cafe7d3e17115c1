// Trains on the counting data in a process of its own, so that a test can kill it.
// Arguments: model, folder of the run, options as JSON. Prints every step on stdout, and the result with a hash of the weights.
import { train } from "@tinker-ts/cookbook/supervised";
import { ServiceClient } from "tinker-ts";
import { register } from "tsx/esm/api";

register();
const { countingData, hashOfWeights } = await import("./local-service.ts");
const [, , model, folder, options] = process.argv;
const { batches, ...rest } = JSON.parse(options);
const service = new ServiceClient({ baseUrl: "local:" });
const result = await train({
  service,
  model,
  folder,
  data: countingData(batches),
  ...rest,
  onProgress: ({ step }) => process.stdout.write(`step ${step}\n`),
});
const weights = await hashOfWeights(service, result.checkpoint.samplerPath);
process.stdout.write(`${JSON.stringify({ ...result, weights })}\n`);
await service.close();
