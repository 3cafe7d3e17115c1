import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

interface CommitLine {
  readonly key: "header" | "file" | "lfsFile";
  readonly value: {
    readonly summary: string;
    readonly path: string;
    readonly content: string;
    readonly oid: string;
  };
}

/** The fields of requests. */
interface Order {
  readonly organization?: string;
  readonly name?: string;
  readonly visibility?: string;
  readonly files?: readonly { readonly path: string }[];
  readonly objects?: readonly { readonly oid: string }[];
}

/** A repository that was uploaded to. */
export class UploadedRepository {
  readonly visibility: string;
  readonly branches = new Map<string, Map<string, Buffer>>([["main", new Map()]]);
  readonly commits: { branch: string; title: string; isPullRequest: boolean }[] = [];

  constructor(visibility: string) {
    this.visibility = visibility;
  }

  /** Names of the files of a branch. */
  files(branch: string): string[] {
    return [...(this.branches.get(branch)?.keys() ?? [])].toSorted();
  }

  text(branch: string, file: string): string | undefined {
    return this.branches.get(branch)?.get(file)?.toString("utf8");
  }
}

/** A real server on loopback with the endpoints of the hub that an upload needs. */
export class UploadHub {
  static readonly token = "hf_secret";
  readonly repositories = new Map<string, UploadedRepository>();
  readonly #large = new Map<string, Buffer>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<UploadHub> {
    const hub = new UploadHub();
    await new Promise<void>((resolve) => hub.#server.listen(0, "127.0.0.1", resolve));
    return hub;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const { pathname, searchParams } = new URL(request.url ?? "", this.endpoint);
    const isUpload = pathname.startsWith("/storage/");
    if (!isUpload && request.headers.authorization !== `Bearer ${UploadHub.token}`) {
      return send(response, 401, { error: "Invalid credentials" });
    }
    const order = (): Order => JSON.parse(body.toString()) as Order;
    const [, repository = "", action, branch = ""] =
      /^\/api\/models\/([^/]+\/[^/]+)\/(branch|preupload|commit)\/([^/]+)$/.exec(pathname) ?? [];
    const repo = this.repositories.get(repository);
    const name = decodeURIComponent(branch);
    if (pathname === "/api/whoami-v2") return send(response, 200, { name: "somebody", auth: {} });
    if (pathname === "/api/repos/create") return this.#create(response, order());
    if (pathname.endsWith(".git/info/lfs/objects/batch")) return this.#batch(response, order());
    if (isUpload) {
      this.#large.set(pathname.slice("/storage/".length), body);
      return send(response, 200, {});
    }
    if (action === "branch" && repo) {
      if (!repo.branches.has(name)) repo.branches.set(name, new Map(repo.branches.get("main")));
      return send(response, 200, {});
    }
    if (action === "preupload" && repo?.branches.has(name)) {
      const { files = [] } = order();
      const modes = files.map(({ path }) => ({
        path,
        uploadMode: path.endsWith(".safetensors") ? "lfs" : "regular",
      }));
      return send(response, 200, { files: modes });
    }
    if (action === "commit" && repo?.branches.has(name)) {
      const lines = body.toString().split("\n");
      const isPullRequest = searchParams.has("create_pr");
      this.#commit(repo, { branch: name, isPullRequest }, lines);
      return send(response, 200, { success: true, commitOid: "0", commitUrl: "" });
    }
    return this.#serveFile(response, pathname);
  }

  #create(response: ServerResponse, order: Order): void {
    const name = `${order.organization}/${order.name}`;
    if (this.repositories.has(name)) return send(response, 409, { error: "it exists" });
    this.repositories.set(name, new UploadedRepository(order.visibility ?? ""));
    send(response, 200, { url: `${this.endpoint}/${name}` });
  }

  #batch(response: ServerResponse, { objects: wanted = [] }: Order): void {
    const objects = wanted.map(({ oid }) => ({
      oid,
      actions: { upload: { href: `${this.endpoint}/storage/${oid}` } },
    }));
    send(response, 200, { transfer: "basic", objects });
  }

  #commit(
    repo: UploadedRepository,
    { branch, isPullRequest }: { branch: string; isPullRequest: boolean },
    lines: readonly string[],
  ): void {
    const files = repo.branches.get(branch)!;
    for (const { key, value } of lines.map((line) => JSON.parse(line) as CommitLine)) {
      if (key === "header") repo.commits.push({ branch, isPullRequest, title: value.summary });
      if (key === "file") files.set(value.path, Buffer.from(value.content, "base64"));
      if (key === "lfsFile") files.set(value.path, this.#large.get(value.oid)!);
    }
  }

  #serveFile(response: ServerResponse, pathname: string): void {
    const [, repository = "", branch = "", file = ""] =
      /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(pathname) ?? [];
    const content = this.repositories.get(repository)?.text(decodeURIComponent(branch), file);
    if (content === undefined) return send(response, 404, { error: "Entry not found" });
    response.writeHead(200).end(content);
  }
}

function send(response: ServerResponse, status: number, json: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json));
}
