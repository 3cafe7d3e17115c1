import { compileGraph, type CompiledGraph } from "../../graph/compile.js";
import { Dim } from "../../graph/dim.js";
import { Graph } from "../../graph/graph.js";
import { expand, targetLogprobs } from "../../graph/ops/index.js";
import type { Tensor } from "../../graph/tensor.js";
import { declareTrainedHead } from "../../model/layer-inputs.js";
import type { ModelConfig } from "../../model/model-config.js";
import { declareAdapter } from "../../model/projectors.js";
import { logits } from "../../model/transformer.js";
import { outerWeightSpecs } from "../../model/weights.js";
import type { Loss } from "../losses.js";
import {
  adaptedSites,
  adapterTensors,
  namedGradients,
  type Trained,
  trainedProjector,
} from "./trained.js";

/** Log-probabilities of targets for a chunk of rows. */
export function headForward(config: ModelConfig, trained: Trained): CompiledGraph {
  const { graph, logprobs } = build(config, trained);
  return compileGraph(graph, { outputs: { logprobs } });
}

/** Log-probabilities and terms of a loss, without gradients. */
export function headLoss(config: ModelConfig, trained: Trained, loss: Loss): CompiledGraph {
  const { graph, logprobs } = build(config, trained);
  return compileGraph(graph, { outputs: { logprobs, terms: lossTerms(graph, logprobs, loss) } });
}

/** Log-probabilities, terms of a loss, and gradients of the hidden states and of the trained parameters. */
export function headBackward(
  config: ModelConfig,
  trained: Trained,
  loss: Loss,
  inputGradient: boolean,
): CompiledGraph {
  const { graph, hidden, logprobs, parameters } = build(config, trained);
  const terms = lossTerms(graph, logprobs, loss);
  const ones = expand(graph.scalar(1), terms.shape);
  const wrt = inputGradient ? { ...parameters, hidden } : parameters;
  const gradients = namedGradients([{ of: terms, gradient: ones }], wrt);
  return compileGraph(graph, { outputs: { logprobs, terms, ...gradients } });
}

function build(config: ModelConfig, trained: Trained) {
  const graph = new Graph();
  const rows = Dim.symbol("rows");
  const hidden = graph.input("hidden", [rows, config.hiddenSize]);
  const specs = outerWeightSpecs(config);
  const finalNorm = graph.input("finalNorm", specs.finalNorm.shape);
  const weight = declareTrainedHead(graph, config);
  const adapter = declareAdapter(graph, config, ["head"], adaptedSites(trained));
  const project = trainedProjector(config, trained, () => ({ weight }), adapter);
  const targets = graph.input("targets", [rows, Dim.symbol("targetsPerRow")], "int64");
  const logprobs = targetLogprobs(logits(config, { finalNorm }, project, hidden), targets);
  const parameters: Record<string, Tensor> =
    trained.kind === "full" && !("values" in weight)
      ? { finalNorm, head: weight }
      : adapterTensors(adapter);
  return { graph, hidden, logprobs, parameters };
}

function lossTerms(graph: Graph, logprobs: Tensor, loss: Loss): Tensor {
  const declare = (prefix: string, names: readonly string[]): Record<string, Tensor> => {
    const tensors: Record<string, Tensor> = {};
    for (const name of names) tensors[name] = graph.input(`${prefix}.${name}`, logprobs.shape);
    return tensors;
  };
  const settings = declare("setting", Object.keys(loss.settings));
  return loss.perTarget(logprobs, declare("loss", loss.inputs), settings);
}
