import type { Grammars } from "../decoding/grammars.js";
import type { PassDecoder } from "../decoding/pass-decoder.js";
import type { ServerLimits } from "../limits.js";
import type { Logger } from "../log/logger.js";
import type { Metrics } from "../metrics/metrics.js";
import type { Recorder } from "../recording/recorder.js";
import type { RequestLedger } from "../queue/request-ledger.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";

/** What nearly every part of the server needs. */
export interface Context {
  readonly store: Store;
  readonly ledger: RequestLedger;
  readonly passes: PassDecoder;
  readonly grammars: Grammars;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: ServerLimits;
  readonly metrics: Metrics;
  readonly recorder: Recorder;
}
