import { TrainedModel } from "./trained-model.js";

/**
 * All weights of a model in training, on a copy; the model itself does not change. To sample from the
 * result, export it and give it to `Engine.createModel`.
 */
export class FullTuning extends TrainedModel {}
