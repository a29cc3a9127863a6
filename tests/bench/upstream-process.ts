/** The server of bench:egress in a process of its own: neither the direct client nor the door's host shares its thread. Ends with its input. */
import { startTlsUpstream } from "../support/upstream.ts";

const upstream = await startTlsUpstream(["bench.test"]);
const { address, port, caPem, caPath } = upstream;
console.log(JSON.stringify({ address, port, caPem, caPath }));
process.stdin.resume().once("end", () => void upstream.close());
