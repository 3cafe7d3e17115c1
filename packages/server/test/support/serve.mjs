// Starts the compiled server with the options given as JSON and prints its address.
import { startServer } from "../../dist/index.js";

const server = await startServer(JSON.parse(process.argv[2]));
console.log(server.url);
process.once("SIGTERM", () => void server.close());
