// Starts the compiled server as serve.mjs does; when its engine breaks, the driver is mended at once where the
// second argument says how.
import { closeSync, openSync, writeSync } from "node:fs";
import { startServer } from "../../dist/index.js";
import { createLogger } from "../../dist/log/logger.js";

const [options, fault] = process.argv.slice(2).map((argument) => JSON.parse(argument));
const logger = createLogger("error");
const server = await startServer({
  ...options,
  logger: {
    ...logger,
    error: (event, fields) => {
      logger.error(event, fields);
      if (event.startsWith("the engine broke")) mend();
    },
  },
});
console.log(server.url);
process.once("SIGTERM", () => void server.close());

function mend() {
  if (fault === null) return;
  const descriptor = openSync(fault.file, "r+");
  writeSync(descriptor, Buffer.from(fault.sound, "hex"), 0, null, fault.offset);
  closeSync(descriptor);
}
