import { setOwn } from "../../schema/set-own.js";
import { readMessage, type MessageForm, type MessageReader } from "./message-reader.js";

/*
 * The messages of proto/tinker_public.proto that are read, as plain objects. Numbers are those of that file; the
 * generated code is not used here, because its library is larger than the rest of the client.
 */

/** Number formats of packed values. */
export const DType = { float32: 1, int64: 2, int32: 3, bfloat16: 4 } as const;

/** Why a sequence ended. */
export const StopReason = { stop: 0, length: 1 } as const;

const none: Uint8Array = new Uint8Array();

/** An entry of a map. */
interface Entry<V> {
  key: string;
  value: V;
}

function entryForm<V>(
  empty: () => V,
  read: (r: MessageReader, set: (value: V) => void) => void,
): MessageForm<Entry<V>> {
  return {
    empty: () => ({ key: "", value: empty() }),
    fields: {
      1: (r, m) => r.string((value) => (m.key = value)),
      2: (r, m) => read(r, (value) => (m.value = value)),
    },
  };
}

/** Puts the entry that is being read into a map. */
function intoMap<V>(r: MessageReader, form: MessageForm<Entry<V>>, map: Record<string, V>): void {
  r.message(form, ({ key, value }) => setOwn(map, key, value));
}

const numberEntry = entryForm(
  () => 0,
  (r, set) => r.double(set),
);

/** The most probable tokens of every position, of a prompt or of what was sampled. */
export interface TopkMessage {
  tokenIds: Uint8Array;
  logprobs: Uint8Array;
  k: number;
  promptLength: number;
}

const topkForm: MessageForm<TopkMessage> = {
  empty: () => ({ tokenIds: none, logprobs: none, k: 0, promptLength: 0 }),
  fields: {
    1: (r, m) => r.bytes((value) => (m.tokenIds = value)),
    2: (r, m) => r.bytes((value) => (m.logprobs = value)),
    3: (r, m) => r.uint32((value) => (m.k = value)),
    4: (r, m) => r.uint32((value) => (m.promptLength = value)),
  },
};

/** One sampled sequence. */
export interface SequenceMessage {
  stopReason: number;
  tokens: Uint8Array;
  logprobs: Uint8Array | undefined;
  topLogprobs: TopkMessage | undefined;
}

const sequenceForm: MessageForm<SequenceMessage> = {
  empty: () => ({ stopReason: 0, tokens: none, logprobs: undefined, topLogprobs: undefined }),
  fields: {
    1: (r, m) => r.int32((value) => (m.stopReason = value)),
    2: (r, m) => r.bytes((value) => (m.tokens = value)),
    3: (r, m) => r.bytes((value) => (m.logprobs = value)),
    1001: (r, m) => r.message(topkForm, (value) => (m.topLogprobs = value)),
  },
};

/** A sample result. */
export interface SampleResponseMessage {
  sequences: SequenceMessage[];
  promptLogprobs: Uint8Array | undefined;
  topkPromptLogprobs: TopkMessage | undefined;
  promptCacheHitTokens: number;
}

const sampleResponseForm: MessageForm<SampleResponseMessage> = {
  empty: () => ({
    sequences: [],
    promptLogprobs: undefined,
    topkPromptLogprobs: undefined,
    promptCacheHitTokens: 0,
  }),
  fields: {
    1: (r, m) => r.message(sequenceForm, (value) => m.sequences.push(value)),
    2: (r, m) => r.bytes((value) => (m.promptLogprobs = value)),
    3: (r, m) => r.message(topkForm, (value) => (m.topkPromptLogprobs = value)),
    4: (r, m) => r.int32((value) => (m.promptCacheHitTokens = value)),
  },
};

export const readSampleResponse = (bytes: Uint8Array): SampleResponseMessage =>
  readMessage(bytes, sampleResponseForm);

/** A sparse matrix. */
export interface SparseCsrMessage {
  values: Uint8Array;
  crowIndices: Uint8Array;
  colIndices: Uint8Array;
}

const sparseCsrForm: MessageForm<SparseCsrMessage> = {
  empty: () => ({ values: none, crowIndices: none, colIndices: none }),
  fields: {
    1: (r, m) => r.bytes((value) => (m.values = value)),
    2: (r, m) => r.bytes((value) => (m.crowIndices = value)),
    3: (r, m) => r.bytes((value) => (m.colIndices = value)),
  },
};

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

const tensorForm: MessageForm<TensorMessage> = {
  empty: emptyTensor,
  fields: {
    1: (r, m) => r.bytes((value) => (m.encoding = { case: "dense", value })),
    2: (r, m) => r.message(sparseCsrForm, (value) => (m.encoding = { case: "sparseCsr", value })),
    3: (r, m) => r.int32((value) => (m.dtype = value)),
    4: (r, m) => r.int64((value) => m.shape.push(value)),
  },
};

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

const batchedTensorForm: MessageForm<BatchedTensorMessage> = {
  empty: emptyBatch,
  fields: {
    1: (r, m) => r.bytes((value) => (m.data = value)),
    2: (r, m) => r.bytes((value) => (m.offsets = value)),
    3: (r, m) => r.int32((value) => (m.dtype = value)),
    4: (r, m) => r.int64((value) => m.trailingShape.push(value)),
  },
};

/** The outputs of datums with equal layout. */
export interface ArrayRecordMessage {
  typeTag: string;
  fields: Record<string, BatchedTensorMessage>;
  numDatums: bigint;
}

const fieldEntry = entryForm(emptyBatch, (r, set) => r.message(batchedTensorForm, set));

const arrayRecordForm: MessageForm<ArrayRecordMessage> = {
  empty: () => ({ typeTag: "", fields: {}, numDatums: 0n }),
  fields: {
    1: (r, m) => r.string((value) => (m.typeTag = value)),
    2: (r, m) => intoMap(r, fieldEntry, m.fields),
    3: (r, m) => r.int64((value) => (m.numDatums = value)),
  },
};

/** The result of a pass. */
export interface ForwardBackwardOutputMessage {
  lossFnOutputType: string;
  lossFnOutputs: ArrayRecordMessage[];
  metrics: Record<string, number>;
}

const forwardBackwardOutputForm: MessageForm<ForwardBackwardOutputMessage> = {
  empty: () => ({ lossFnOutputType: "", lossFnOutputs: [], metrics: {} }),
  fields: {
    1: (r, m) => r.string((value) => (m.lossFnOutputType = value)),
    2: (r, m) => r.message(arrayRecordForm, (value) => m.lossFnOutputs.push(value)),
    3: (r, m) => intoMap(r, numberEntry, m.metrics),
  },
};

export const readForwardBackwardOutput = (bytes: Uint8Array): ForwardBackwardOutputMessage =>
  readMessage(bytes, forwardBackwardOutputForm);

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

const textForm: MessageForm<{ tokens: Uint8Array }> = {
  empty: () => ({ tokens: none }),
  fields: { 1: (r, m) => r.bytes((value) => (m.tokens = value)) },
};
const imageForm: MessageForm<ImageMessage> = {
  empty: () => ({ data: none, format: "", expectedTokens: undefined }),
  fields: {
    1: (r, m) => r.bytes((value) => (m.data = value)),
    2: (r, m) => r.string((value) => (m.format = value)),
    3: (r, m) => r.int32((value) => (m.expectedTokens = value)),
  },
};
const dmelForm: MessageForm<{ dmel: Uint8Array }> = {
  empty: () => ({ dmel: none }),
  fields: { 1: (r, m) => r.bytes((value) => (m.dmel = value)) },
};
const chunkForm: MessageForm<ChunkMessage> = {
  empty: () => ({ chunk: { case: undefined } }),
  fields: {
    1: (r, m) => r.message(textForm, (value) => (m.chunk = { case: "encodedText", value })),
    2: (r, m) => r.message(imageForm, (value) => (m.chunk = { case: "image", value })),
    3: (r, m) => r.message(dmelForm, (value) => (m.chunk = { case: "dmel", value })),
  },
};

/** One training example. */
export interface DatumMessage {
  modelInput: ChunkMessage[];
  lossFnInputs: Record<string, TensorMessage>;
}

const inputEntry = entryForm(emptyTensor, (r, set) => r.message(tensorForm, set));

const datumForm: MessageForm<DatumMessage> = {
  empty: () => ({ modelInput: [], lossFnInputs: {} }),
  fields: {
    1: (r, m) => r.message(chunkForm, (value) => m.modelInput.push(value)),
    2: (r, m) => intoMap(r, inputEntry, m.lossFnInputs),
  },
};

/** A training request. */
export interface ForwardBackwardRequestMessage {
  modelId: string;
  seqId: number;
  data: DatumMessage[];
  lossFn: string;
  lossFnConfig: Record<string, number>;
  forwardOnly: boolean;
}

const forwardBackwardRequestForm: MessageForm<ForwardBackwardRequestMessage> = {
  empty: () => ({
    modelId: "",
    seqId: 0,
    data: [],
    lossFn: "",
    lossFnConfig: {},
    forwardOnly: false,
  }),
  fields: {
    1: (r, m) => r.string((value) => (m.modelId = value)),
    2: (r, m) => r.int32((value) => (m.seqId = value)),
    3: (r, m) => r.message(datumForm, (value) => m.data.push(value)),
    4: (r, m) => r.string((value) => (m.lossFn = value)),
    5: (r, m) => intoMap(r, numberEntry, m.lossFnConfig),
    6: (r, m) => r.int32((value) => (m.forwardOnly = value !== 0)),
  },
};

export const readForwardBackwardRequest = (bytes: Uint8Array): ForwardBackwardRequestMessage =>
  readMessage(bytes, forwardBackwardRequestForm);
