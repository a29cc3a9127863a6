// The client of bench:egress: kept-alive requests, then one stream. Arguments: origin, number of requests, megabytes.
import { Agent, get } from "node:https";

const [origin, requests, megabytes] = process.argv.slice(2);
const agent = new Agent({
  keepAlive: true,
  maxSockets: 1,
  // Outside a sandbox no resolver knows the name; the connection is the same otherwise.
  ...(process.env.BENCH_CONNECT && {
    lookup: (_name, options, done) =>
      options.all ? done(null, [{ address: process.env.BENCH_CONNECT, family: 4 }]) : done(null, process.env.BENCH_CONNECT, 4),
  }),
});

function fetchBytes(path) {
  return new Promise((resolve, reject) => {
    get(origin + path, { agent }, (response) => {
      let bytes = 0;
      response.on("data", (chunk) => (bytes += chunk.length));
      response.on("end", () => (response.statusCode === 200 ? resolve(bytes) : reject(new Error(`${response.statusCode}`))));
      response.on("error", reject);
    }).on("error", reject);
  });
}

const latencies = [];
for (let i = 0; i <= Number(requests); i++) {
  const started = performance.now();
  await fetchBytes("/small");
  latencies.push(performance.now() - started);
}
const started = performance.now();
const bytes = await fetchBytes(`/stream?mb=${megabytes}`);
const seconds = (performance.now() - started) / 1000;
console.log(JSON.stringify({ first: latencies[0], latencies: latencies.slice(1), mbPerSecond: bytes / 1e6 / seconds }));
process.exit(0);
