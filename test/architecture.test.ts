import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { resolveRelative, root, sourceFiles, type SourceFile } from "./support/source-graph.js";

/** Which of this repository's packages a package may import; `dynamic` ones only on demand. */
const packageRules: Readonly<Record<string, { allowed: string[]; dynamic?: string[] }>> = {
  sdk: { allowed: ["@tinker-ts/hub/retry"], dynamic: ["@tinker-ts/hub", "@tinker-ts/hub/files"] },
  hub: { allowed: [] },
  engine: { allowed: ["@tinker-ts/hub", "@tinker-ts/hub/files", "@tinker-ts/hub/weights"] },
  server: {
    allowed: ["tinker-ts/wire"],
    dynamic: ["@tinker-ts/engine", "@tinker-ts/hub"],
  },
  studio: { allowed: ["tinker-ts/wire/studio"] },
  cookbook: {
    allowed: [
      "tinker-ts",
      "tinker-ts/run-log",
      "@tinker-ts/hub",
      "@tinker-ts/hub/files",
      "@tinker-ts/hub/retry",
      "@tinker-ts/hub/weights",
    ],
  },
  cli: {
    allowed: [],
    dynamic: [
      "tinker-ts",
      "tinker-ts/wire",
      "tinker-ts/run-log",
      "@tinker-ts/hub",
      "@tinker-ts/hub/files",
      "@tinker-ts/engine",
      "@tinker-ts/server",
      "@tinker-ts/server/local",
      "@tinker-ts/cookbook/data",
      "@tinker-ts/cookbook/distillation",
      "@tinker-ts/cookbook/evaluation",
      "@tinker-ts/cookbook/hyperparameters",
      "@tinker-ts/cookbook/preference",
      "@tinker-ts/cookbook/recipes",
      "@tinker-ts/cookbook/renderers",
      "@tinker-ts/cookbook/rl",
      "@tinker-ts/cookbook/runs",
      "@tinker-ts/cookbook/supervised",
      "@tinker-ts/cookbook/weights",
    ],
  },
};

/** Which folders of a package's `src` a folder may import; a folder not listed here has no place. */
const layerRules: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  sdk: {
    errors: [],
    schema: ["errors"],
    types: ["errors", "schema"],
    wire: ["errors", "schema", "types"],
    runtime: ["errors", "types"],
    transport: ["errors", "schema", "types", "wire", "runtime"],
    telemetry: ["errors", "schema", "types", "runtime", "transport"],
    session: ["errors", "types", "wire", "runtime", "transport", "telemetry"],
    futures: ["errors", "schema", "types", "wire", "runtime", "transport", "telemetry", "session"],
    tokenizers: ["errors", "runtime", "session"],
    checkpoints: ["errors", "wire", "runtime", "transport", "session"],
    clients: [
      "errors",
      "schema",
      "types",
      "wire",
      "runtime",
      "transport",
      "telemetry",
      "session",
      "futures",
      "tokenizers",
      "checkpoints",
      "run-log",
    ],
    "run-log": ["errors", "wire"],
    "index.ts": ["errors", "types", "clients"],
  },
  engine: {
    "errors.ts": [],
    util: [],
    graph: ["util"],
    execution: ["errors.ts", "util", "graph"],
    // Each part of the GPU's code is used where the processor's counterpart is, so that it lies across the layers.
    gpu: ["errors.ts", "util", "graph", "execution", "model", "train", "sample", "runtime"],
    model: ["errors.ts", "util", "graph", "execution", "gpu"],
    train: ["errors.ts", "util", "graph", "execution", "gpu", "model"],
    constrain: ["errors.ts", "util"],
    sample: ["errors.ts", "util", "graph", "execution", "gpu", "model", "constrain"],
    runtime: [
      "errors.ts",
      "util",
      "graph",
      "execution",
      "gpu",
      "model",
      "train",
      "sample",
      "constrain",
    ],
    "find-model.ts": ["errors.ts"],
    "snapshot.ts": ["runtime"],
    "trained-model.ts": ["train", "runtime"],
    "full-tuning.ts": ["trained-model.ts"],
    "adapter.ts": ["runtime", "snapshot.ts", "trained-model.ts"],
    "base-model.ts": [
      "errors.ts",
      "model",
      "sample",
      "runtime",
      "adapter.ts",
      "full-tuning.ts",
      "snapshot.ts",
    ],
    "adapter-folder.ts": ["errors.ts", "adapter.ts", "base-model.ts"],
    "engine.ts": ["errors.ts", "model", "runtime", "base-model.ts", "gpu", "find-model.ts"],
    "index.ts": [
      "errors.ts",
      "execution",
      "gpu",
      "model",
      "train",
      "constrain",
      "sample",
      "runtime",
      "adapter.ts",
      "adapter-folder.ts",
      "base-model.ts",
      "engine.ts",
      "find-model.ts",
      "full-tuning.ts",
      "snapshot.ts",
      "trained-model.ts",
    ],
  },
  server: {
    time: [],
    log: [],
    "prices.ts": ["engine-port", "errors"],
    "lru-map.ts": [],
    "loop-turns.ts": ["scheduler.ts"],
    metrics: [],
    "scheduler.ts": [],
    errors: ["log"],
    auth: ["time"],
    store: ["errors"],
    workers: ["errors", "lru-map.ts", "prices.ts", "scheduler.ts", "store", "structure"],
    recording: ["lru-map.ts", "prices.ts", "log", "store", "time"],
    "engine-port": ["store"],
    checkpoints: ["engine-port", "errors", "prices.ts", "log", "store", "time"],
    "engine-host": ["engine-port", "errors", "prices.ts", "log", "store"],
    sessions: ["auth", "errors", "prices.ts", "log", "recording", "store", "time"],
    journal: [
      "auth",
      "workers",
      "errors",
      "http",
      "prices.ts",
      "log",
      "metrics",
      "scheduler.ts",
      "sessions",
      "store",
      "time",
    ],
    // Training and sampling meet in the journal and the scheduler; neither knows the other.
    training: [
      "auth",
      "checkpoints",
      "workers",
      "engine-host",
      "engine-port",
      "errors",
      "http",
      "journal",
      "prices.ts",
      "log",
      "metrics",
      "recording",
      "scheduler.ts",
      "sessions",
      "store",
      "time",
    ],
    sampling: [
      "loop-turns.ts",
      "auth",
      "checkpoints",
      "workers",
      "engine-host",
      "engine-port",
      "errors",
      "http",
      "journal",
      "prices.ts",
      "log",
      "metrics",
      "scheduler.ts",
      "sessions",
      "store",
      "time",
    ],
    service: [
      "checkpoints",
      "journal",
      "prices.ts",
      "log",
      "recording",
      "sampling",
      "sessions",
      "store",
      "time",
      "training",
    ],
    rest: ["checkpoints", "errors", "store"],
    http: [
      "auth",
      "errors",
      "log",
      "loop-turns.ts",
      "prices.ts",
      "scheduler.ts",
      "time",
      "workers",
    ],
    "core.ts": [
      "loop-turns.ts",
      "checkpoints",
      "workers",
      "engine-host",
      "engine-port",
      "journal",
      "prices.ts",
      "log",
      "metrics",
      "recording",
      "sampling",
      "scheduler.ts",
      "service",
      "sessions",
      "store",
      "time",
      "training",
    ],
    studio: [
      "lru-map.ts",
      "auth",
      "checkpoints",
      "core.ts",
      "workers",
      "engine-host",
      "errors",
      "http",
      "log",
      "recording",
      "store",
      "time",
    ],
    handlers: [
      "auth",
      "checkpoints",
      "core.ts",
      "engine-host",
      "errors",
      "http",
      "journal",
      "rest",
      "sampling",
      "store",
      "training",
    ],
    local: ["auth", "errors", "http", "recording", "store"],
    structure: [],
    openai: [
      "prices.ts",
      "auth",
      "checkpoints",
      "core.ts",
      "workers",
      "engine-host",
      "engine-port",
      "errors",
      "http",
      "log",
      "store",
      "structure",
      "time",
      "sampling",
    ],
    "options.ts": ["auth", "prices.ts", "log", "recording", "store", "studio"],
    "app.ts": [
      "openai",
      "auth",
      "core.ts",
      "workers",
      "engine-port",
      "errors",
      "handlers",
      "http",
      "prices.ts",
      "local",
      "log",
      "options.ts",
      "store",
      "studio",
      "time",
      "training",
    ],
    "start-server.ts": ["app.ts", "engine-host", "http", "local", "options.ts"],
    "local-main.ts": ["local", "start-server.ts", "store"],
    "local-handler.ts": ["app.ts", "engine-host", "http", "local", "options.ts", "store"],
    "index.ts": ["auth", "prices.ts", "local-handler.ts", "log", "options.ts", "start-server.ts"],
  },
  cli: {
    errors: [],
    terminal: ["errors"],
    parse: ["errors"],
    output: ["errors", "terminal"],
    present: ["output"],
    "command.ts": ["output", "parse", "terminal"],
    "command-tree.ts": ["command.ts"],
    dispatch: ["command.ts", "command-tree.ts", "errors", "parse"],
    completion: ["command.ts", "command-tree.ts", "dispatch", "parse"],
    chat: ["errors", "parse"],
    connect: ["command.ts", "errors", "output", "parse", "terminal"],
    auth: ["command.ts", "connect", "errors"],
    doctor: ["command.ts", "connect", "errors", "output"],
    "hub-upload": ["errors", "output"],
    training: ["command.ts", "connect", "errors", "parse", "terminal"],
    commands: [
      "auth",
      "chat",
      "command.ts",
      "command-tree.ts",
      "completion",
      "connect",
      "doctor",
      "errors",
      "hub-upload",
      "output",
      "parse",
      "present",
      "terminal",
      "training",
    ],
    "run-cli.ts": [
      "command.ts",
      "command-tree.ts",
      "commands",
      "dispatch",
      "errors",
      "output",
      "parse",
      "terminal",
    ],
    "main.ts": ["run-cli.ts", "terminal"],
    "index.ts": ["main.ts", "run-cli.ts", "terminal"],
  },
  cookbook: {
    renderers: [],
    data: ["renderers"],
    runs: ["renderers", "hyperparameters", "evaluation"],
    hyperparameters: [],
    weights: [],
    losses: [],
    tools: ["renderers", "evaluation"],
    rl: ["renderers", "data", "runs", "losses", "hyperparameters", "evaluation", "tools"],
    distillation: ["renderers", "data", "runs", "rl", "evaluation", "supervised"],
    preference: [
      "renderers",
      "data",
      "runs",
      "losses",
      "hyperparameters",
      "evaluation",
      "rl",
      "supervised",
    ],
    evaluation: ["renderers", "data"],
    supervised: ["renderers", "data", "runs", "hyperparameters", "evaluation"],
    recipes: [
      "renderers",
      "data",
      "runs",
      "losses",
      "hyperparameters",
      "evaluation",
      "rl",
      "preference",
      "distillation",
      "supervised",
      "tools",
    ],
  },
  studio: {
    text: [],
    data: ["text"],
    styles: [],
    parts: ["text", "data", "styles"],
    charts: ["text", "data", "parts", "styles"],
    screens: ["text", "data", "styles", "parts", "charts"],
    "main.tsx": ["data", "styles", "parts", "screens"],
    "index.ts": [],
  },
  hub: {
    "errors.ts": [],
    "retry.ts": [],
    files: ["errors.ts"],
    hub: ["errors.ts", "files", "retry.ts"],
    tokenizer: ["errors.ts", "files"],
    weights: ["errors.ts", "files"],
    "index.ts": ["errors.ts", "hub", "tokenizer"],
  },
};

/** Libraries that the studio's page is made of; it carries nothing else. */
const pageLibraries = [
  "preact",
  "preact/hooks",
  "@preact/signals",
  "uplot",
  "uplot/dist/uPlot.min.css",
];

/** Folders where Node's own modules may be used; everything else must run anywhere. */
const builtInRules: Readonly<Record<string, readonly string[]>> = {
  sdk: ["wire", "transport", "checkpoints", "clients/side-thread", "run-log"],
};

const files = sourceFiles();
const packageNames = new Map(
  [...new Set(files.map(({ packageFolder }) => packageFolder))].map((folder) => {
    const manifest = JSON.parse(
      readFileSync(path.join(root, "packages", folder, "package.json"), "utf8"),
    ) as { name: string };
    return [manifest.name, folder];
  }),
);

describe("who may import whom", () => {
  it("packages keep their direction", () => {
    const violations = files.flatMap(({ file, packageFolder, imports }) =>
      imports
        .filter(({ specifier }) => packageOf(specifier))
        .filter(({ specifier, isDynamic, isTypeOnly }) => {
          const { allowed, dynamic = [] } = packageRules[packageFolder] ?? { allowed: [] };
          const isAllowed = allowed.includes(specifier);
          return !isAllowed && !((isDynamic || isTypeOnly) && dynamic.includes(specifier));
        })
        .map(({ specifier }) => `${file} -> ${specifier}`),
    );
    expect(violations).toEqual([]);
  });

  it("folders inside a package keep their direction", () => {
    const violations = files.flatMap(({ file, packageFolder, imports }) => {
      const layers = layerRules[packageFolder];
      if (!layers) return [];
      const own = layerOf(file);
      const allowed = layers[own];
      if (!allowed) return [`${file}: src/${own} has no place in the architecture`];
      return imports
        .filter(({ specifier }) => specifier.startsWith("."))
        .map(({ specifier }) => layerOf(resolveRelative(file, specifier)))
        .filter((layer) => layer !== own && !allowed.includes(layer))
        .map((layer) => `${file} -> ${layer}`);
    });
    expect(violations).toEqual([]);
  });

  it("packages reach each other by name only", () => {
    const violations = files.flatMap(({ file, packageFolder, imports }) =>
      imports
        .filter(({ specifier }) => specifier.startsWith("."))
        .map(({ specifier }) => resolveRelative(file, specifier))
        .filter((target) => !target.startsWith(`packages/${packageFolder}/src/`))
        .map((target) => `${file} -> ${target}`),
    );
    expect(violations).toEqual([]);
  });

  it("the engine's tensor language and its execution read no model files", () => {
    const folders = ["util", "graph", "execution", "constrain"];
    const violations = files
      .filter(
        ({ file, packageFolder }) => packageFolder === "engine" && folders.includes(layerOf(file)),
      )
      .flatMap(({ file, imports }) =>
        imports
          .filter(({ specifier }) => packageOf(specifier))
          .map(({ specifier }) => `${file} -> ${specifier}`),
      );
    expect(violations).toEqual([]);
  });

  it("tools import the engine, the hub and the engine's random numbers only", () => {
    const allowed = [
      "@tinker-ts/engine",
      "@tinker-ts/hub",
      "@tinker-ts/hub/files",
      "packages/engine/src/util/random.ts",
    ];
    const violations = sourceFiles("tools").flatMap(({ file, imports }) =>
      imports
        .map(({ specifier }) =>
          specifier.startsWith(".") ? resolveRelative(file, specifier) : specifier,
        )
        .filter((target) => packageOf(target) ?? target.startsWith("packages/"))
        .filter((target) => !allowed.includes(target))
        .map((target) => `${file} -> ${target}`),
    );
    expect(violations).toEqual([]);
  });

  it("Node's own modules stay where they are allowed", () => {
    const violations = files
      .filter(({ packageFolder }) => builtInRules[packageFolder])
      .filter(
        ({ file, packageFolder }) =>
          !builtInRules[packageFolder]!.some((folder) =>
            file.startsWith(`packages/${packageFolder}/src/${folder}/`),
          ),
      )
      .flatMap(({ file, imports }) =>
        imports
          .filter(({ specifier }) => specifier.startsWith("node:"))
          .map(({ specifier }) => `${file} -> ${specifier}`),
      );
    expect(violations).toEqual([]);
  });

  it("the studio's page carries its three libraries and nothing else", () => {
    const violations = files
      .filter(({ file }) => file.startsWith("packages/studio/") && !file.endsWith("/src/index.ts"))
      .flatMap(({ file, imports }) =>
        imports
          .filter(({ specifier }) => !specifier.startsWith(".") && !packageOf(specifier))
          .filter(({ specifier }) => !pageLibraries.includes(specifier))
          .map(({ specifier }) => `${file} -> ${specifier}`),
      );
    expect(violations).toEqual([]);
  });

  it("there are no cycles", () => {
    expect(findCycle(files)).toBeUndefined();
  });
});

it("no declared type has snake_case properties", () => {
  const violations = declarationFiles("packages")
    .filter((file) => !file.endsWith("_pb.d.ts"))
    .flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/^\s*(?:readonly )?([a-z0-9]+_\w+)\??:/gm)].map(
        ([, name]) => `${path.relative(root, file)}: ${name}`,
      ),
    );
  expect(violations).toEqual([]);
});

function declarationFiles(folder: string): string[] {
  return readdirSync(path.join(root, folder))
    .map((name) => path.join(root, folder, name, "dist"))
    .filter((dist) => existsSync(dist))
    .flatMap((dist) =>
      readdirSync(dist, { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(".d.ts"))
        .map((file) => path.join(dist, file)),
    );
}

function layerOf(file: string): string {
  return file.split("/")[3]!;
}

function packageOf(specifier: string): string | undefined {
  return [...packageNames.keys()].find(
    (name) => specifier === name || specifier.startsWith(`${name}/`),
  );
}

function findCycle(sources: readonly SourceFile[]): string | undefined {
  const graph = new Map(
    sources.map(({ file, imports }) => [
      file,
      imports
        .filter(
          ({ specifier, isTypeOnly, isDynamic }) =>
            specifier.startsWith(".") && !isTypeOnly && !isDynamic,
        )
        .map(({ specifier }) => resolveRelative(file, specifier)),
    ]),
  );
  const done = new Set<string>();
  const visit = (file: string, trail: readonly string[]): string | undefined => {
    if (trail.includes(file)) return [...trail.slice(trail.indexOf(file)), file].join(" -> ");
    if (done.has(file)) return undefined;
    for (const target of graph.get(file) ?? []) {
      const cycle = visit(target, [...trail, file]);
      if (cycle) return cycle;
    }
    done.add(file);
    return undefined;
  };
  return sources.map(({ file }) => visit(file, [])).find((cycle) => cycle !== undefined);
}
