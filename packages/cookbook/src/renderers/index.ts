export {
  contentParts,
  hasThinking,
  textOf,
  thinkingOf,
  withoutThinking,
  type ContentPart,
  type ImagePart,
  type Message,
  type TextPart,
  type ThinkingPart,
  type ToolCall,
  type ToolSpec,
  type UnparsedToolCall,
} from "./message.js";
export type {
  GenerationPromptOptions,
  ParsedResponse,
  ParseOptions,
  Renderer,
  RendererTokenizer,
  StreamEvent,
  StreamingParser,
  SupervisedExample,
  Termination,
} from "./renderer.js";
export { trainOnWhat, type TrainOnWhat } from "./train-on-what.js";
