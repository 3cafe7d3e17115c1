export {
  defineDistillation,
  readDistillModule,
  type Distillation,
  type DistillPlan,
  type DistillRunOptions,
  type DistillKind,
  type DistillModule,
  type DistillSetup,
} from "./distill-setup.js";
export { trainOffPolicy, type OffPolicyOptions } from "./off-policy.js";
export {
  promptGroup,
  teacherDistance,
  trainOnPolicy,
  type OnPolicyOptions,
  type PromptGroupOptions,
  type TeacherDataset,
  type TeacherOptions,
} from "./on-policy.js";
export { openAIAnswers, openAITeacher, type OpenAIServerOptions } from "./openai-teacher.js";
export {
  distilledFile,
  distillPrompt,
  type AnswerMessages,
  type PromptDistillationOptions,
  type PromptDistillationResult,
} from "./prompt-distillation.js";
export { reverseDivergence, trainSdft, type Demonstration, type SdftOptions } from "./sdft.js";
export { softTargetDatum, type TeacherTopK } from "./soft-targets.js";
export { samplingTeacher, type AskOptions, type Teacher } from "./teacher.js";
