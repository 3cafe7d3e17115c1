export { HubError, type HubErrorCategory } from "./errors.js";
export type { DownloadProgress } from "./hub/progress.js";
export type { HubFiles } from "./hub/files.js";
export { hubDatasetFiles, type HubDatasetOptions } from "./hub/hub-dataset.js";
export { resolveModel, type ResolvedModel, type ResolveModelOptions } from "./hub/resolve-model.js";
export type { RetryPolicy } from "./hub/transient-error.js";
export {
  type ChatMessage,
  ChatTemplate,
  type ChatTemplates,
  type RenderChatOptions,
  RenderedChat,
} from "./tokenizer/chat-template.js";
export type { EncodedChat } from "./tokenizer/encode-chat.js";
export { IncrementalDecoder } from "./tokenizer/token-decoder.js";
export { loadTokenizer, parseTokenizer, type TokenizerFiles } from "./tokenizer/load-tokenizer.js";
export { pythonStrip, type StripSide } from "./tokenizer/python-text.js";
export { thinkingState } from "./tokenizer/thinking-state.js";
export type { EncodeOptions } from "./tokenizer/token-encoder.js";
export { Tokenizer, type DecodeOptions } from "./tokenizer/tokenizer.js";
export type { NamedToken, NamedTokens } from "./tokenizer/vocabulary.js";
