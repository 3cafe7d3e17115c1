export { openSession } from "../session/open-session.js";
export { createModel } from "./create-model.js";
export { createSamplingSession } from "./create-sampling-session.js";
export { makeTrainingClient, makeTrainingClientFromState } from "./make-training-client.js";
