import type { ServerDescription } from "tinker-ts";
import type { CommandContext } from "../command.js";
import { chooseTarget, type Target } from "../connect/target.js";
import { withService } from "../connect/with-service.js";
import { CliError } from "../errors/cli-error.js";
import { describeError } from "../output/describe-error.js";
import { broken, ok, type Finding } from "./finding.js";

/** Whether the chosen server answers, what it speaks, and whether it takes the key. */
export async function checkServer(context: CommandContext): Promise<Finding[]> {
  let target: Target;
  try {
    target = chooseTarget(context);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    const remedy = "Nothing is wrong; to use a server set TINKER_BASE_URL or TINKER_API_KEY.";
    return [{ check: "Server", state: "skipped", finding: "none is set", remedy }];
  }
  const where = target.kind === "local" ? "the engine in this process" : target.baseUrl;
  try {
    return await withService(context, async ({ service, dialect, bounds }) => {
      const server = await service.describeServer(bounds);
      const count = server.models.length;
      const models = `${count} model${count === 1 ? "" : "s"}`;
      const kind = server.name === null || target.kind === "local" ? "" : `, ${server.name}`;
      // Servers without the configuration endpoint are older than the protobuf form of messages.
      const spoken = dialect() === "json" ? "JSON (an older server)" : "protobuf and JSON";
      return [
        ok("Server", `${where}${kind}, ${models}`),
        ok("Dialect", spoken),
        ...describe(server),
        keyFinding(target),
      ];
    });
  } catch (error) {
    context.signal.throwIfAborted();
    const { heading, detail } = describeError(error);
    const finding = `${where}: ${heading}`;
    const isKey = heading === "Authentication failed" || heading === "Permission denied";
    if (isKey) {
      return [
        ok("Server", where),
        broken(
          "Key",
          detail ?? heading,
          "Set TINKER_API_KEY (or --api-key) to a key of this server.",
        ),
      ];
    }
    return [broken("Server", finding, detail ?? "Start one with 'tinker-ts serve'.")];
  }
}

/** What the server lacks, and what it does otherwise without a word. */
function describe({ missing, silences }: ServerDescription): Finding[] {
  return [
    endpointsFinding(missing),
    ...missingOf(missing).map(({ endpoint, since }) => ({
      check: "Missing",
      state: "skipped" as const,
      finding: since === null ? endpoint : `${endpoint} (since ${since})`,
      remedy: null,
    })),
    ...silences.map((finding) => ({
      check: "Silence",
      state: "warning" as const,
      finding,
      remedy: null,
    })),
  ];
}

const missingOf = (missing: ServerDescription["missing"]) => missing ?? [];

function endpointsFinding(missing: ServerDescription["missing"]): Finding {
  if (missing === null) return ok("Endpoints", "it does not show which it has");
  return ok("Endpoints", missing.length === 0 ? "all" : `all but ${missing.length}`);
}

function keyFinding(target: Target): Finding {
  if (target.kind === "local") return ok("Key", "none is needed");
  return ok("Key", target.apiKey === undefined ? "none was needed" : "accepted");
}
