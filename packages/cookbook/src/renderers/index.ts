export type {
  ChatFormat,
  Extension,
  GivenPiece,
  ImagePiece,
  MessagePlace,
  OutputPiece,
  RenderedMessage,
} from "./chat-format.js";
export { chatTemplateRenderer, type ChatTemplateOptions } from "./chat-template-renderer.js";
export {
  imageSize,
  kimiImageTokens,
  loadImages,
  qwenImageTokens,
  type ImageSize,
  type LoadImagesOptions,
} from "./images.js";
export { markupOf, type Mark, type Markup, type MarkupTemplate } from "./markup.js";
export {
  asMessages,
  contentParts,
  hasThinking,
  splitThinking,
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
export { fromOpenAIMessages, toOpenAIMessage, type OpenAIMessage } from "./openai-messages.js";
export type { ResponseReader } from "./parsing/response-reader.js";
export { classifyParseFailure, type ParseFailure } from "./parse-failure.js";
export { recommendedRenderer, recommendedRenderers } from "./recommended.js";
export {
  createRenderer,
  getRenderer,
  isRendererRegistered,
  listRenderers,
  registerRenderer,
  unregisterRenderer,
  type RendererFactory,
  type RendererOptions,
} from "./registry.js";
export { RendererError } from "./renderer-error.js";
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
export { showExample, type ShowExampleOptions } from "./show-example.js";
export { rendererForTools, withTextTools, type TextToolsOptions } from "./text-tools.js";
export { trainOnWhat, type TrainOnWhat } from "./train-on-what.js";
