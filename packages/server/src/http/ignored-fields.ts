import type { WireTypeName } from "tinker-ts/wire";
import type { Logger } from "../log/logger.js";

/** Most client versions, and most field names of each. */
const most = 50;
const maxNameLength = 100;

/**
 * Notes the fields of requests that are not known here and were ignored: once in the log, counted in the
 * metrics, by client version and name. Only so many of each are kept, because both come from clients.
 */
export class IgnoredFields {
  readonly #count: (labels: { client: string; field: string }) => void;
  readonly #logger: Logger;
  readonly #fields = new Map<string, Set<string>>();

  constructor(count: (labels: { client: string; field: string }) => void, logger: Logger) {
    this.#count = count;
    this.#logger = logger;
  }

  note({ headers }: Request, typeName: WireTypeName, paths: readonly string[]): void {
    if (paths.length === 0) return;
    const client = clientOf(headers);
    const fields = this.#fields.get(client) ?? new Set();
    if (fields.size === 0 && this.#fields.size >= most) return;
    this.#fields.set(client, fields);
    for (const path of paths) {
      const field = `${typeName}.${path}`.slice(0, maxNameLength);
      if (!fields.has(field)) {
        if (fields.size >= most) continue;
        fields.add(field);
        this.#logger.info("ignored a request field that is not known here", { client, field });
      }
      this.#count({ client, field });
    }
  }
}

/** Name and version by which a client introduces itself. */
function clientOf(headers: Headers): string {
  const agent = headers.get("user-agent") ?? "unknown";
  const version = headers.get("x-stainless-package-version");
  const name = version && !agent.includes(version) ? `${agent} ${version}` : agent;
  return name.slice(0, maxNameLength);
}
