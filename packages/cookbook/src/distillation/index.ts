export {
  promptGroup,
  teacherDistance,
  type PromptGroupOptions,
  type TeacherOptions,
} from "./on-policy.js";
export { softTargetDatum, type TeacherTopK } from "./soft-targets.js";
