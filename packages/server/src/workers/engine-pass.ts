import {
  type Datum,
  decodeProto,
  type ModelInput,
  type TensorData,
  type WireValue,
} from "tinker-ts/wire";
import { ApiError, badRequest } from "../errors/api-error.js";
import { canonicalPass, identityOf, isInOrder } from "../store/content.js";

/** Numbers of a loss with their shape. */
interface PassTensor {
  readonly data: Float32Array | Int32Array;
  readonly shape: readonly number[];
}

/** One example as the engine wants it. */
interface PassDatum {
  readonly tokens: Int32Array;
  readonly inputs: Readonly<Record<string, PassTensor>>;
}

/** A pass as the engine wants it. */
export interface EnginePass {
  readonly data: readonly PassDatum[];
  readonly lossFn: WireValue<"ForwardBackwardInput">["lossFn"];
  readonly lossFnConfig: Readonly<Record<string, number>> | null;
  readonly forwardOnly: boolean;
  /** Tokens of all data. */
  readonly tokens: number;
}

/** Decodes what was kept of a pass. */
export function decodePass(payload: Uint8Array): EnginePass {
  return toEnginePass(decodeProto("ForwardBackwardRequest", payload));
}

/** A decoded pass as the engine wants it; names the datum and field at fault. */
function toEnginePass({
  forwardBackwardInput,
  forwardOnly,
}: WireValue<"ForwardBackwardRequest">): EnginePass {
  const { lossFn } = forwardBackwardInput;
  const lossFnConfig = toNumbers(forwardBackwardInput.lossFnConfig);
  const data = forwardBackwardInput.data.map(toEngineDatum);
  const tokens = data.reduce((sum, datum) => sum + datum.tokens.length, 0);
  return { data, lossFn, lossFnConfig, forwardOnly, tokens };
}

/** The losses of the engine take numbers only. */
function toNumbers(
  config: WireValue<"ForwardBackwardInput">["lossFnConfig"],
): EnginePass["lossFnConfig"] {
  if (config === null) return null;
  for (const [name, value] of Object.entries(config)) {
    if (typeof value !== "number") {
      throw badRequest(
        `loss_fn_config.${name}`,
        `expected a number, got the text ${JSON.stringify(value.slice(0, 100))}`,
      );
    }
  }
  return config as Record<string, number>;
}

/** The tokens of an input that is text only. */
export function textTokens(input: ModelInput, field: string): Int32Array {
  const other = input.chunks.find((chunk) => chunk.type !== "encoded_text");
  if (other) {
    throw new ApiError(
      400,
      `${field}: ${other.type} chunks need a model that reads them; this server's models read text only`,
    );
  }
  return input.toInts();
}

/**
 * The same pass in memory that threads share: it goes from the one that decodes through the event loop to
 * the engine without being copied.
 */
export function inSharedMemory(pass: EnginePass): EnginePass {
  let values = 0;
  for (const { tokens, inputs } of pass.data) {
    values += tokens.length;
    for (const { data } of Object.values(inputs)) values += data.length;
  }
  const memory = new SharedArrayBuffer(values * 4);
  let offset = 0;
  const share = <T extends Float32Array | Int32Array>(array: T, view: T): T => {
    view.set(array);
    offset += array.byteLength;
    return view;
  };
  const integers = (array: Int32Array): Int32Array =>
    share(array, new Int32Array(memory, offset, array.length));
  const floats = (array: Float32Array): Float32Array =>
    share(array, new Float32Array(memory, offset, array.length));
  const data = pass.data.map(({ tokens, inputs }) => ({
    tokens: integers(tokens),
    inputs: mapped(inputs, (input) => ({
      shape: input.shape,
      data: input.data instanceof Float32Array ? floats(input.data) : integers(input.data),
    })),
  }));
  return { ...pass, data };
}

function toEngineDatum({ modelInput, lossFnInputs }: Datum, index: number): PassDatum {
  return {
    tokens: textTokens(modelInput, `data[${index}].model_input`),
    inputs: mapped(lossFnInputs, (tensor, name) =>
      toEngineTensor(tensor, `data[${index}].loss_fn_inputs.${name}`),
    ),
  };
}

function toEngineTensor(tensor: TensorData, field: string): PassTensor {
  const { data, shape } = tensor.toDense();
  if (data instanceof BigInt64Array) {
    throw new ApiError(400, `${field}: holds integers beyond 32 bits, which no token id has`);
  }
  return { data, shape: shape ?? [data.length] };
}

function mapped<T, R>(
  record: Readonly<Record<string, T>>,
  map: (value: T, name: string) => R,
): Record<string, R> {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name, map(value, name)]),
  );
}

/** A forward or forward/backward request as it is accepted: where it belongs and what is kept of it. */
export interface ReceivedPass {
  readonly modelId: string;
  readonly seqId: number | null;
  readonly kind: "forward" | "forward_backward";
  /** The form in which it is kept. */
  readonly payload: Uint8Array;
  /** What a retry has in common with it. */
  readonly identity: Uint8Array;
}

/** The form of a decoded request in which it is kept: the protobuf that `came` where that is in order. */
export function toReceivedPass(
  request: WireValue<"ForwardBackwardRequest">,
  came: Uint8Array | null,
): ReceivedPass {
  const { modelId, seqId, forwardOnly } = request;
  const kind = forwardOnly ? "forward" : "forward_backward";
  const payload = came !== null && isInOrder(request) ? came : canonicalPass(request);
  return { modelId, seqId, kind, payload, identity: identityOf(kind, payload) };
}
