import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

/** A repository that the fake hub serves. */
export interface FakeRepository {
  readonly commit: string;
  /** Contents by file name; those in `large` are stored elsewhere, as the hub does with weights. */
  readonly files: Readonly<Record<string, Uint8Array>>;
  readonly large?: readonly string[];
  /** The only token that may read it. */
  readonly token?: string;
  /** Other branches by name. */
  readonly branches?: Readonly<Record<string, FakeRepository>>;
}

/** One request as a server saw it. */
export interface SeenRequest {
  readonly server: "hub" | "storage";
  readonly method: string;
  readonly path: string;
  readonly range: string | undefined;
  readonly authorization: string | undefined;
}

/** Answers a request in place of the usual answer. */
export type Fault = (request: IncomingMessage, response: ServerResponse, body: Uint8Array) => void;

/** Two real servers on loopback that speak the hub's endpoints: the hub, and the storage it redirects to. */
export class FakeHub {
  /** By id; data sets by `datasets/` and their id. */
  readonly repositories = new Map<string, FakeRepository>();
  /** New names of repositories by their old ones. */
  readonly renamed = new Map<string, string>();
  readonly seen: SeenRequest[] = [];
  readonly #faults: { method: string; ending: string; fault: Fault }[] = [];
  readonly #hub: Server;
  readonly #storage: Server;

  private constructor() {
    this.#hub = createServer((request, response) => this.#answerHub(request, response));
    this.#storage = createServer((request, response) => this.#answerStorage(request, response));
  }

  static async start(): Promise<FakeHub> {
    const fake = new FakeHub();
    for (const server of [fake.#hub, fake.#storage]) {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    }
    return fake;
  }

  async stop(): Promise<void> {
    for (const server of [this.#hub, this.#storage]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  get endpoint(): string {
    return origin(this.#hub);
  }

  /** The next request of this method whose path ends so is answered by `fault`. */
  failNext(method: "GET" | "HEAD", ending: string, fault: Fault): void {
    this.#faults.push({ method, ending, fault });
  }

  #answerHub(request: IncomingMessage, response: ServerResponse): void {
    const url = this.#note("hub", request);
    const info = /^\/api\/(?:models\/)?(.+)\/revision\/(.+)$/.exec(url);
    const file = /^\/(.+)\/resolve\/([^/]+)\/(.+)$/.exec(url);
    const [, id = "", revision = "", name = ""] = info ?? file ?? [];
    const newId = this.renamed.get(id);
    if (newId) return end(response, 307, { location: url.replace(id, newId) });
    const main = this.repositories.get(id);
    if (!main) return end(response, 404, { "x-error-code": "RepoNotFound" });
    const branches = Object.entries({ main, ...main.branches });
    const branch = branches.find(([at, { commit }]) => at === revision || commit === revision);
    if (!branch) return end(response, 404, { "x-error-code": "RevisionNotFound" });
    const [, repository] = branch;
    if (repository.token && request.headers.authorization !== `Bearer ${repository.token}`) {
      const refused = request.headers.authorization ? 403 : 401;
      return end(response, refused, { "x-error-message": "Access to this model is restricted." });
    }
    if (info) {
      const siblings = Object.keys(repository.files).map((rfilename) => ({ rfilename }));
      const json = Buffer.from(JSON.stringify({ sha: repository.commit, siblings }));
      return this.#serve(request, response, json, {});
    }
    const body = repository.files[name];
    if (!body) return end(response, 404, { "x-error-code": "EntryNotFound" });
    const commit = { "x-repo-commit": repository.commit };
    if (!repository.large?.includes(name)) {
      return this.#serve(request, response, body, { ...commit, etag: `"${gitObjectId(body)}"` });
    }
    const planned = request.method === "HEAD" ? this.#takeFault(request) : undefined;
    if (planned) return planned(request, response, body);
    return end(response, 302, {
      ...commit,
      location: `${origin(this.#storage)}/${id}/${name}`,
      "x-linked-etag": `"${sha256(body)}"`,
      "x-linked-size": String(body.length),
    });
  }

  #answerStorage(request: IncomingMessage, response: ServerResponse): void {
    const url = this.#note("storage", request);
    const [, id = "", name = ""] = /^\/(.+)\/([^/]+)$/.exec(url) ?? [];
    const body = this.repositories.get(id)?.files[name];
    if (!body) return end(response, 404);
    return this.#serve(request, response, body, { etag: '"of-the-storage"' });
  }

  #serve(
    request: IncomingMessage,
    response: ServerResponse,
    body: Uint8Array,
    headers: Record<string, string>,
  ): void {
    const planned = this.#takeFault(request);
    if (planned) return planned(request, response, body);
    return serveBytes(request, response, body, headers);
  }

  #takeFault(request: IncomingMessage): Fault | undefined {
    const index = this.#faults.findIndex(
      ({ method, ending }) => method === request.method && (request.url ?? "").endsWith(ending),
    );
    return index < 0 ? undefined : this.#faults.splice(index, 1)[0]?.fault;
  }

  #note(server: "hub" | "storage", request: IncomingMessage): string {
    const { range, authorization } = request.headers;
    const path = decodeURIComponent(request.url ?? "");
    this.seen.push({ server, method: request.method ?? "", path, range, authorization });
    return path;
  }
}

/** Answers with the bytes asked for, as any server of files does. */
export function serveBytes(
  request: IncomingMessage,
  response: ServerResponse,
  body: Uint8Array,
  headers: Record<string, string> = {},
): void {
  const { start, answer } = partOf(request, body);
  response.writeHead(answer.status, { ...headers, ...answer.headers });
  response.end(request.method === "HEAD" ? undefined : body.subarray(start));
}

/** Promises the rest of the file and breaks the connection after some bytes of it. */
export function dropAfter(bytes: number): Fault {
  return (request, response, body) => {
    const { start, answer } = partOf(request, body);
    response.writeHead(answer.status, answer.headers);
    response.write(body.subarray(start, start + bytes), () => response.destroy());
  };
}

/** Ends properly, but before a position in the file is passed. */
export function endAt(position: number): Fault {
  return (request, response, body) => {
    const { start, answer } = partOf(request, body);
    const part = body.subarray(start, position);
    response.writeHead(answer.status, { ...answer.headers, "content-length": String(part.length) });
    response.end(part);
  };
}

function partOf(request: IncomingMessage, body: Uint8Array) {
  const asked = /^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1];
  const start = Number(asked ?? 0);
  const headers: Record<string, string> = { "content-length": String(body.length - start) };
  if (asked === undefined) return { start, answer: { status: 200, headers } };
  headers["content-range"] = `bytes ${start}-${body.length - 1}/${body.length}`;
  return { start, answer: { status: 206, headers } };
}

/** Answers with a status alone. */
export function status(code: number, headers: Record<string, string> = {}): Fault {
  return (_, response) => end(response, code, headers);
}

/** The name under which the cache keeps a small file. */
export function gitObjectId(body: Uint8Array): string {
  return createHash("sha1").update(`blob ${body.length}\0`).update(body).digest("hex");
}

/** The name under which the cache keeps a large file. */
export function sha256(body: Uint8Array): string {
  return createHash("sha256").update(body).digest("hex");
}

function end(response: ServerResponse, code: number, headers: Record<string, string> = {}): void {
  response.writeHead(code, headers).end();
}

function origin(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === "string")
    throw new Error("the server is not listening");
  return `http://127.0.0.1:${address.port}`;
}
