import { decodeJson, decodeProto } from "tinker-ts/wire";
import type { FakeService } from "./fake-service.js";
import { bare, drop, json, type Reply, type SeenRequest } from "./scripted-server.js";

/** The fault of one attempt to submit a request. */
export type Fault =
  /** Refused for good; nothing is applied. */
  | "refuse"
  /** Refused for now; nothing is applied. */
  | "busy"
  /** Applied, but the answer is lost. */
  | "loseAnswer"
  /** Applied, but the answer is a server error. */
  | "failAfterwards"
  /** The connection breaks before the request is looked at. */
  | "drop";

/** A request that the model has accepted. */
export interface AcceptedRequest {
  readonly seqId: number;
  readonly requestId: string;
  /** What the caller wrote into the request to find it again. */
  readonly label: string;
  readonly isForwardOnly: boolean;
}

interface Arrival {
  readonly seqId: number;
  readonly label: string;
  readonly isForwardOnly: boolean;
  readonly payload: string;
}

/**
 * One model that works like a real one: requests run strictly by number, a gap is waited at for ever,
 * the same number with the same payload is the same request, with another payload a conflict.
 */
export class ModelServer {
  /** Accepted requests in order of arrival. */
  readonly accepted: AcceptedRequest[] = [];
  readonly #payloads = new Map<number, string>();
  readonly #faultsOf: (label: string) => Fault[];

  /** `faultsOf` gives the list of faults that attempts with a label use up, first to last. */
  constructor(service: FakeService, faultsOf: (label: string) => Fault[] = () => []) {
    this.#faultsOf = faultsOf;
    const { server } = service;
    for (const endpoint of ["forwardBackward", "forward", "optimStep"] as const) {
      server.handle(endpoint, (request) => {
        const isProto = request.headers["content-type"] === "application/x-protobuf";
        return isProto && service.dialect === "json" ? bare(415) : this.#handIn(request);
      });
    }
    server.handle("retrieveFuture", (request) => this.#poll(request, service));
  }

  /** Numbers that were accepted, ascending. */
  get seqIds(): number[] {
    return this.accepted.map(({ seqId }) => seqId).toSorted((a, b) => a - b);
  }

  #handIn(request: SeenRequest): Reply {
    const arrival = readArrival(request);
    const fault = this.#faultsOf(arrival.label).shift();
    if (fault === "refuse") return json({ detail: "refused" }, 400);
    if (fault === "busy") return json({ detail: "busy" }, 503);
    if (fault === "drop") return drop("before");
    const known = this.#payloads.get(arrival.seqId);
    if (known !== undefined && known !== arrival.payload) {
      return json({ detail: `seq_id ${arrival.seqId} is taken` }, 409, {
        "x-should-retry": "false",
      });
    }
    const requestId = `seq-${arrival.seqId}`;
    if (known === undefined) {
      const { seqId, label, isForwardOnly } = arrival;
      this.#payloads.set(seqId, arrival.payload);
      this.accepted.push({ seqId, label, isForwardOnly, requestId });
    }
    if (fault === "loseAnswer") return drop("before");
    if (fault === "failAfterwards") return bare(500);
    return json({ request_id: requestId });
  }

  /** A request has run when everything before it is there. */
  #poll(request: SeenRequest, service: FakeService): Reply {
    const requestId = String(request.json?.["request_id"]);
    if (!requestId.startsWith("seq-")) return service.result(request);
    const seqId = Number(requestId.slice(4));
    for (let earlier = 1; earlier < seqId; earlier++) {
      if (!this.#payloads.has(earlier)) {
        return json({ type: "try_again", request_id: requestId, queue_state: "active" });
      }
    }
    const isPass = request.headers["x-tinker-request-type"] !== "OptimStep";
    return isPass
      ? service.encode("ForwardBackwardOutput", {
          lossFnOutputType: "T",
          lossFnOutputs: [{}],
          metrics: { "loss:sum": seqId },
        })
      : service.encode("OptimStepResponse", { metrics: { "seq:sum": seqId } });
  }
}

/** A step is labelled by its learning rate, a chunk by its loss configuration and its first token. */
function readArrival(request: SeenRequest): Arrival {
  const payload = request.body.toString("latin1");
  if (request.endpoint === "optimStep") {
    const { adamParams, seqId } = decodeJson("OptimStepRequest", request.body);
    const label = `${adamParams?.learningRate}`;
    return { seqId: seqId ?? 0, label, isForwardOnly: false, payload };
  }
  const { input, seqId, isForwardOnly } = readPass(request);
  const chunk = input.data[0]!.modelInput.toInts()[0];
  const label = `${input.lossFnConfig?.["operation"]}.${chunk}${isForwardOnly ? " filler" : ""}`;
  return { seqId: seqId ?? 0, label, isForwardOnly, payload };
}

function readPass({ endpoint, headers, body }: SeenRequest) {
  if (headers["content-type"] === "application/x-protobuf") {
    const { forwardBackwardInput, seqId, forwardOnly } = decodeProto(
      "ForwardBackwardRequest",
      body,
    );
    return { input: forwardBackwardInput, seqId, isForwardOnly: forwardOnly };
  }
  if (endpoint === "forward") {
    const { forwardInput, seqId } = decodeJson("ForwardRequest", body);
    return { input: forwardInput, seqId, isForwardOnly: true };
  }
  const { forwardBackwardInput, seqId } = decodeJson("ForwardBackwardRequest", body);
  return { input: forwardBackwardInput, seqId, isForwardOnly: false };
}
