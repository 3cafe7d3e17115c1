import { setOwn } from "../../schema/set-own.js";
import { MessageReader, type FieldReaders } from "./message-reader.js";

/*
 * The messages of proto/tinker_public.proto that are read, as plain objects. Numbers are those of that file; the
 * generated code is not used here, because its library is larger than the rest of the client.
 */

/** Number formats of packed values. */
export const DType = { float32: 1, int64: 2, int32: 3, bfloat16: 4 } as const;

/** Why a sequence ended. */
export const StopReason = { stop: 0, length: 1 } as const;

const none: Uint8Array = new Uint8Array();

function reader<T>(create: () => T, fields: (message: T) => FieldReaders) {
  return (bytes: Uint8Array): T => {
    const message = create();
    new MessageReader(bytes).read(fields(message));
    return message;
  };
}

/** Reads an entry of a map into it. */
function entry<V>(
  map: Record<string, V>,
  empty: () => V,
  value: (r: MessageReader, set: (value: V) => void) => void,
) {
  return (bytes: Uint8Array): void => {
    let key = "";
    let found = empty();
    new MessageReader(bytes).read({
      1: (r) => r.string((text) => (key = text)),
      2: (r) => value(r, (read) => (found = read)),
    });
    setOwn(map, key, found);
  };
}

/** The most probable tokens of every position, of a prompt or of what was sampled. */
export interface TopkMessage {
  tokenIds: Uint8Array;
  logprobs: Uint8Array;
  k: number;
  promptLength: number;
}

const readTopk = reader<TopkMessage>(
  () => ({ tokenIds: none, logprobs: none, k: 0, promptLength: 0 }),
  (m) => ({
    1: (r) => r.bytes((value) => (m.tokenIds = value)),
    2: (r) => r.bytes((value) => (m.logprobs = value)),
    3: (r) => r.uint32((value) => (m.k = value)),
    4: (r) => r.uint32((value) => (m.promptLength = value)),
  }),
);

/** One sampled sequence. */
export interface SequenceMessage {
  stopReason: number;
  tokens: Uint8Array;
  logprobs: Uint8Array | undefined;
  topLogprobs: TopkMessage | undefined;
}

const readSequence = reader<SequenceMessage>(
  () => ({ stopReason: 0, tokens: none, logprobs: undefined, topLogprobs: undefined }),
  (m) => ({
    1: (r) => r.int32((value) => (m.stopReason = value)),
    2: (r) => r.bytes((value) => (m.tokens = value)),
    3: (r) => r.bytes((value) => (m.logprobs = value)),
    1001: (r) => r.message(readTopk, (value) => (m.topLogprobs = value)),
  }),
);

/** A sample result. */
export interface SampleResponseMessage {
  sequences: SequenceMessage[];
  promptLogprobs: Uint8Array | undefined;
  topkPromptLogprobs: TopkMessage | undefined;
  promptCacheHitTokens: number;
}

export const readSampleResponse = reader<SampleResponseMessage>(
  () => ({
    sequences: [],
    promptLogprobs: undefined,
    topkPromptLogprobs: undefined,
    promptCacheHitTokens: 0,
  }),
  (m) => ({
    1: (r) => r.message(readSequence, (value) => m.sequences.push(value)),
    2: (r) => r.bytes((value) => (m.promptLogprobs = value)),
    3: (r) => r.message(readTopk, (value) => (m.topkPromptLogprobs = value)),
    4: (r) => r.int32((value) => (m.promptCacheHitTokens = value)),
  }),
);

/** A sparse matrix. */
export interface SparseCsrMessage {
  values: Uint8Array;
  crowIndices: Uint8Array;
  colIndices: Uint8Array;
}

const readSparseCsr = reader<SparseCsrMessage>(
  () => ({ values: none, crowIndices: none, colIndices: none }),
  (m) => ({
    1: (r) => r.bytes((value) => (m.values = value)),
    2: (r) => r.bytes((value) => (m.crowIndices = value)),
    3: (r) => r.bytes((value) => (m.colIndices = value)),
  }),
);

/** A tensor of a training request. */
export interface TensorMessage {
  encoding:
    | { case: "dense"; value: Uint8Array }
    | { case: "sparseCsr"; value: SparseCsrMessage }
    | { case: undefined };
  dtype: number;
  shape: bigint[];
}

const emptyTensor = (): TensorMessage => ({ encoding: { case: undefined }, dtype: 0, shape: [] });

const readTensorMessage = reader<TensorMessage>(emptyTensor, (m) => ({
  1: (r) => r.bytes((value) => (m.encoding = { case: "dense", value })),
  2: (r) => r.message(readSparseCsr, (value) => (m.encoding = { case: "sparseCsr", value })),
  3: (r) => r.int32((value) => (m.dtype = value)),
  4: (r) => r.int64((value) => m.shape.push(value)),
}));

/** One field of the outputs of several datums. */
export interface BatchedTensorMessage {
  data: Uint8Array;
  offsets: Uint8Array;
  dtype: number;
  trailingShape: bigint[];
}

const emptyBatch = (): BatchedTensorMessage => ({
  data: none,
  offsets: none,
  dtype: 0,
  trailingShape: [],
});

const readBatchedTensor = reader<BatchedTensorMessage>(emptyBatch, (m) => ({
  1: (r) => r.bytes((value) => (m.data = value)),
  2: (r) => r.bytes((value) => (m.offsets = value)),
  3: (r) => r.int32((value) => (m.dtype = value)),
  4: (r) => r.int64((value) => m.trailingShape.push(value)),
}));

/** The outputs of datums with equal layout. */
export interface ArrayRecordMessage {
  typeTag: string;
  fields: Record<string, BatchedTensorMessage>;
  numDatums: bigint;
}

const readArrayRecord = reader<ArrayRecordMessage>(
  () => ({ typeTag: "", fields: {}, numDatums: 0n }),
  (m) => {
    const addField = entry(m.fields, emptyBatch, (r, set) => r.message(readBatchedTensor, set));
    return {
      1: (r) => r.string((value) => (m.typeTag = value)),
      2: (r) => r.bytes(addField),
      3: (r) => r.int64((value) => (m.numDatums = value)),
    };
  },
);

/** The result of a pass. */
export interface ForwardBackwardOutputMessage {
  lossFnOutputType: string;
  lossFnOutputs: ArrayRecordMessage[];
  metrics: Record<string, number>;
}

export const readForwardBackwardOutput = reader<ForwardBackwardOutputMessage>(
  () => ({ lossFnOutputType: "", lossFnOutputs: [], metrics: {} }),
  (m) => {
    const addMetric = entry(
      m.metrics,
      () => 0,
      (r, set) => r.double(set),
    );
    return {
      1: (r) => r.string((value) => (m.lossFnOutputType = value)),
      2: (r) => r.message(readArrayRecord, (value) => m.lossFnOutputs.push(value)),
      3: (r) => r.bytes(addMetric),
    };
  },
);

/** One piece of an input. */
export interface ChunkMessage {
  chunk:
    | { case: "encodedText"; value: { tokens: Uint8Array } }
    | { case: "image"; value: ImageMessage }
    | { case: "dmel"; value: { dmel: Uint8Array } }
    | { case: undefined };
}

interface ImageMessage {
  data: Uint8Array;
  format: string;
  expectedTokens: number | undefined;
}

const readText = reader(
  () => ({ tokens: none }),
  (m) => ({ 1: (r) => r.bytes((value) => (m.tokens = value)) }),
);
const readImage = reader<ImageMessage>(
  () => ({ data: none, format: "", expectedTokens: undefined }),
  (m) => ({
    1: (r) => r.bytes((value) => (m.data = value)),
    2: (r) => r.string((value) => (m.format = value)),
    3: (r) => r.int32((value) => (m.expectedTokens = value)),
  }),
);
const readDmel = reader(
  () => ({ dmel: none }),
  (m) => ({ 1: (r) => r.bytes((value) => (m.dmel = value)) }),
);
const readChunkMessage = reader<ChunkMessage>(
  () => ({ chunk: { case: undefined } }),
  (m) => ({
    1: (r) => r.message(readText, (value) => (m.chunk = { case: "encodedText", value })),
    2: (r) => r.message(readImage, (value) => (m.chunk = { case: "image", value })),
    3: (r) => r.message(readDmel, (value) => (m.chunk = { case: "dmel", value })),
  }),
);

/** One training example. */
export interface DatumMessage {
  modelInput: ChunkMessage[];
  lossFnInputs: Record<string, TensorMessage>;
}

const readDatumMessage = reader<DatumMessage>(
  () => ({ modelInput: [], lossFnInputs: {} }),
  (m) => {
    const addInput = entry(m.lossFnInputs, emptyTensor, (r, set) =>
      r.message(readTensorMessage, set),
    );
    return {
      1: (r) => r.message(readChunkMessage, (value) => m.modelInput.push(value)),
      2: (r) => r.bytes(addInput),
    };
  },
);

/** A training request. */
export interface ForwardBackwardRequestMessage {
  modelId: string;
  seqId: number;
  data: DatumMessage[];
  lossFn: string;
  lossFnConfig: Record<string, number>;
  forwardOnly: boolean;
}

export const readForwardBackwardRequest = reader<ForwardBackwardRequestMessage>(
  () => ({ modelId: "", seqId: 0, data: [], lossFn: "", lossFnConfig: {}, forwardOnly: false }),
  (m) => {
    const addSetting = entry(
      m.lossFnConfig,
      () => 0,
      (r, set) => r.double(set),
    );
    return {
      1: (r) => r.string((value) => (m.modelId = value)),
      2: (r) => r.int32((value) => (m.seqId = value)),
      3: (r) => r.message(readDatumMessage, (value) => m.data.push(value)),
      4: (r) => r.string((value) => (m.lossFn = value)),
      5: (r) => r.bytes(addSetting),
      6: (r) => r.int32((value) => (m.forwardOnly = value !== 0)),
    };
  },
);
