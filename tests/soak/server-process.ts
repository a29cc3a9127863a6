/** A server in a process of its own, so that it can be killed like one. Prints its address when it serves. */
import { startServer } from "../../js/src/node/server.ts";

const [stateDir] = process.argv.slice(2);
if (stateDir === undefined) throw new Error("the state folder is missing");
const server = await startServer({ stateDir });
console.log(JSON.stringify({ url: server.url, operatorToken: server.operatorToken }));
process.once("SIGTERM", () => void server.close().then(() => process.exit(0)));
