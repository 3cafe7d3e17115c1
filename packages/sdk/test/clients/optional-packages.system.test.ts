import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";

const sdk = fileURLToPath(new URL("../..", import.meta.url));
const modules = path.join(sdk, "../../node_modules");

/** A package of the name that is looked for, with a server that knows just enough. */
const serverCode = `
  let started = 0;
  export function createLocalHandler() {
    started++;
    const answers = {
      create_session: { session_id: "s" },
      create_sampling_session: { sampling_session_id: "s:sample:0" },
      get_server_capabilities: { supported_models: [{ model_name: "tiny-" + started }] },
    };
    return {
      fetch: (request) => {
        if (request.headers.has("x-api-key")) throw new Error("a key was sent");
        const answer = answers[new URL(request.url).pathname.split("/").at(-1)];
        return answer ? Response.json(answer) : new Response(null, { status: 404 });
      },
      close: () => console.log("closed"),
    };
  }
`;

let project = "";

beforeEach(() => {
  project = mkdtempSync(path.join(tmpdir(), "tinker-ts-local-"));
  const own = path.join(project, "node_modules/tinker-ts");
  mkdirSync(own, { recursive: true });
  cpSync(path.join(sdk, "dist"), path.join(own, "dist"), { recursive: true });
  cpSync(path.join(sdk, "package.json"), path.join(own, "package.json"));
  symlinkSync(path.join(modules, "@bufbuild"), path.join(project, "node_modules/@bufbuild"));
  const scope = path.join(project, "node_modules/@tinker-ts");
  mkdirSync(scope);
  symlinkSync(path.join(modules, "@tinker-ts/hub"), path.join(scope, "hub"));
});

afterEach(() => {
  rmSync(project, { recursive: true });
});

const run = (code: string): string => {
  const program = `import { jaxLoss, ServiceClient } from "tinker-ts";
    const open = () => new ServiceClient({ baseUrl: "local:", inProcess: true, env: {} });
    ${code}`;
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ["--input-type=module", "--eval", program],
    { cwd: project, encoding: "utf8" },
  );
  return (stdout + stderr).trim();
};

it("a missing package is an error that names the install command", () => {
  const output = run(`
    const print = (error) => console.log(error.name, error.code, error.message);
    await open().getServerCapabilities().catch(print);
    await jaxLoss((data, logprobs) => logprobs[0])([], []).catch(print);
  `);
  const how = (name: string, purpose: string) =>
    `DependencyError missing_dependency Install ${name} ${purpose}: npm install ${name}`;
  expect(output.split("\n")).toEqual([
    how("@tinker-ts/server", 'to use baseUrl "local:"'),
    how("@jax-js/jax", "to write losses with its arrays"),
  ]);
});

it("clients of one process share the engine of local:, without a key, and the last one closes it", () => {
  const server = path.join(project, "node_modules/@tinker-ts/server");
  mkdirSync(server, { recursive: true });
  const manifest = { name: "@tinker-ts/server", type: "module", exports: "./index.js" };
  writeFileSync(path.join(server, "package.json"), JSON.stringify(manifest));
  writeFileSync(path.join(server, "index.js"), serverCode);
  const output = run(`
    const names = async (service) =>
      (await service.getServerCapabilities()).supportedModels[0].modelName;
    const [first, second] = [open(), open()];
    console.log(await names(first), await names(second));
    await first.close();
    const sampling = await second.createSamplingClient({ baseModel: "m" });
    console.log(sampling.samplingSessionId);
    await second.close();
    console.log(await names(open()));
  `);
  expect(output.split("\n")).toEqual(["tiny-1 tiny-1", "s:sample:0", "closed", "tiny-2"]);
});
