export { toConversation, toMessages, type Conversation } from "./conversation.js";
export { DataError } from "./data-error.js";
export {
  ConversationDataset,
  conversationToData,
  countTrained,
  splitTest,
  type DataReport,
  type Dataset,
  type DatasetOptions,
  type RenderOptions,
} from "./dataset.js";
export {
  shift,
  toDatum,
  weightsOf,
  type DatumOptions,
  type ShiftedInput,
  type WeightReduction,
} from "./datum.js";
export { interleave, type InterleaveOptions, type WeightedRows } from "./interleave.js";
export {
  badRowsError,
  loadConversations,
  loadRows,
  streamConversations,
  type BadRow,
  type LoadedConversations,
  type LoadOptions,
  type Placed,
  type PlacedConversation,
  type RowOptions,
  type RowSource,
} from "./load-conversations.js";
export {
  bitsPerByte,
  meanNll,
  tokenNll,
  type ByteTokenizer,
  type ScoredDatum,
  type ScoredTokens,
} from "./nll.js";
export { permutation, seededRandom, shuffledBatch } from "./random.js";
export { readRows, type HubSource, type Row } from "./rows.js";
export { splitList } from "./split-list.js";
export { StreamingDataset, type StreamingDatasetOptions } from "./streaming-dataset.js";
