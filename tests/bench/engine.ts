/**
 * `npm run bench:engine`: create to first exec, a warm exec, files, backups and an idle sandbox's memory, each beside its floor:
 * a shell that the host spawns, the SDK's own client against a bare server in the same sandbox, and squashfs-tools by hand there.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { pssOfSandboxes } from "../soak/many.ts";
import { startTestServer } from "../support/server.ts";
import { startStockServer } from "../support/stock-server.ts";
import { interleave, median, printResult, time } from "./measure.ts";

/** A server that has just started compiles what it runs, beside the calls. */
const WARM_UPS = 10;
const STARTS = 40;
const EXECS = 200;
const FILE_ROUNDS = 15;
const BACKUP_ROUNDS = 15;
const MEGABYTES = 10;
const barePort = "8200";
/** The stock server's on a 2-core machine: cold start and exec. */
const stock = { startMs: 339, execMs: 53 };

/** Answers the SDK's read and write routes from memory, and does nothing else. */
const bareServer = `const answer = (fields) => JSON.stringify({ success: true, exitCode: 0, path: "/file", timestamp: new Date().toISOString(), ...fields });
const read = answer({ content: "0123456789abcdef".repeat(${MEGABYTES} << 16), encoding: "utf-8", isBinary: false, mimeType: "text/plain", size: ${MEGABYTES} << 20 });
require("node:http").createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    response.setHeader("content-type", "application/json");
    response.end(request.url === "/api/read" ? read : answer({ size: JSON.parse(Buffer.concat(chunks)).content.length }));
  });
}).listen(${barePort}, "127.0.0.1", () => console.log("up"));`;

/** A process that spawns: a spawn leaves every page of its process to be copied, and the server's would be slower for it. */
function startSpawner() {
  const child = fork(`${import.meta.dirname}/spawn-process.ts`, {
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  return {
    async spawn(): Promise<number> {
      child.send("spawn");
      const [ms] = await once(child, "message");
      return Number(ms);
    },
    [Symbol.dispose]: () => child.kill(),
  };
}

async function product(): Promise<{ start: number; exec: number; floor: number; idle: number }> {
  await using server = await startTestServer();
  const itx = await server.itx("prj_bench");
  const first = async (name: string) => {
    const sandbox = itx.sandboxes.get(`/sandboxes/${name}`);
    const ms = await time(async () => {
      await sandbox.create({ instanceType: "basic" });
      await sandbox.exec("true");
    });
    await sandbox.destroy();
    return ms;
  };
  for (let round = 0; round < WARM_UPS; round++) await first(`warm-up-${round}`);
  const starts = await interleave(STARTS, { start: (round) => first(`start-${round}`) });
  const sandbox = await itx.sandboxes.get("/sandboxes/warm").create({ instanceType: "basic" });
  for (let round = 0; round < 20; round++) await sandbox.exec("true");
  const idle = pssOfSandboxes();
  using spawner = startSpawner();
  const execs = await interleave(EXECS, {
    floor: () => spawner.spawn(),
    exec: () => time(() => sandbox.exec("true")),
  });
  return {
    start: median(starts.start ?? []),
    exec: median(execs.exec ?? []),
    floor: median(execs.floor ?? []),
    idle,
  };
}

const folder = "/workspace/tree";
/** 2,000 files of text, 1 to 7 KB each as in a source tree: 8 MB, of which a half can be compressed. */
const treeScript = `const fs = require("fs");
let seed = 1;
const below = (limit) => (seed = (seed * 48271) % 2147483647) % limit;
const word = () => Array.from({ length: 3 + below(8) }, () => String.fromCharCode(97 + below(26))).join("");
const words = Array.from({ length: 400 }, word);
for (let index = 0; index < 2000; index++) {
  const length = 1000 + below(6000);
  let text = "";
  while (text.length < length) text += words[below(400)] + [" ", "(", ") ", "; ", ";\\n  ", " = ", ", "][below(7)];
  fs.mkdirSync("${folder}/" + (index % 20), { recursive: true });
  fs.writeFileSync("${folder}/" + (index % 20) + "/" + index + ".ts", text);
}`;
const byHand = {
  backup: `rm -f /var/tmp/hand.sqsh; mksquashfs ${folder} /var/tmp/hand.sqsh -noappend -no-progress -quiet -comp lz4`,
  restore: `rm -rf /workspace/hand; unsquashfs -no-progress -quiet -d /workspace/hand /var/tmp/hand.sqsh`,
};

async function stockClass(transport: string) {
  await using server = await startStockServer({
    worker: new URL("engine-worker.ts", import.meta.url),
    transport,
  });
  const run = (query: Record<string, string>) =>
    server.ask<{ exitCode?: number; stderr?: string }>("/", query);
  const command = async (text: string) => {
    const { exitCode, stderr } = await run({ op: "exec", command: text });
    if (exitCode !== 0) throw new Error(`${text}: ${stderr}`);
  };
  const cold = async (name: string) => {
    const ms = await time(() => run({ op: "exec", name, command: "true" }));
    await run({ op: "end", name });
    return ms;
  };
  for (let round = 0; round < WARM_UPS; round++) await cold(`warm-up-${round}`);
  const colds = await interleave(STARTS, { cold: (round) => cold(`cold-${round}`) });
  for (let round = 0; round < 20; round++) await command("true");
  const warm = await interleave(EXECS, { warm: () => time(() => command("true")) });
  await command(`cat > /tmp/bare.js <<'END'\n${bareServer}\nEND`);
  await run({ op: "start", command: "node /tmp/bare.js" });
  const path = "/workspace/file";
  const mb = String(MEGABYTES);
  const file = (op: string, port: string) => () => time(() => run({ op, port, path, mb }));
  await file("write", "3000")();
  const files = await interleave(FILE_ROUNDS, {
    read: file("read", "3000"),
    bareRead: file("read", barePort),
    write: file("write", "3000"),
    bareWrite: file("write", barePort),
  });
  await command(`cat > /tmp/tree.js <<'END'\n${treeScript}\nEND\nnode /tmp/tree.js`);
  const backups = await interleave(BACKUP_ROUNDS, {
    backup: () => time(() => run({ op: "backup", path: folder })),
    handBackup: () => time(() => command(byHand.backup)),
    put: () => time(() => run({ op: "put" })),
    restore: () => time(() => run({ op: "restore" })),
    handRestore: () => time(() => command(byHand.restore)),
  });
  return Object.fromEntries(
    Object.entries({ ...colds, ...warm, ...files, ...backups }).map(([name, samples]) => [
      name,
      median(samples),
    ]),
  );
}

const { start, exec, floor, idle } = await product();
const ms = (value: number) => `${value.toFixed(1)} ms`;
console.log(`create to first exec: ${ms(start)}; a fifth of the stock server's is ${ms(stock.startMs / 5)}`);
console.log(
  `warm exec: ${ms(exec)}, sh -c true on the host: ${ms(floor)}; at most 3 ms more, and ${ms(stock.execMs / 10)}, are wanted`,
);
const timed = await stockClass("rpc");
const of = (name: string) => timed[name] ?? Number.NaN;
console.log(
  `the SDK's own class: cold start to first exec ${ms(of("cold"))}, warm exec ${ms(of("warm"))}; with the stock server ${ms(stock.startMs)} and ${ms(stock.execMs)}`,
);
const speed = (name: string) => `${((MEGABYTES * 1000) / of(name)).toFixed(0)} MB/s`;
for (const [op, bare] of [
  ["read", "bareRead"],
  ["write", "bareWrite"],
] as const)
  console.log(
    `${op} ${MEGABYTES} MB: ${speed(op)}, from memory: ${speed(bare)}; at least 60 % of it is wanted`,
  );
for (const [op, hand] of [
  ["backup", "handBackup"],
  ["restore", "handRestore"],
] as const)
  console.log(
    `${op} of 2,000 files: ${ms(of(op))}, by hand: ${ms(of(hand))}; at most 1.5 times that is wanted`,
  );
console.log(`the bucket alone takes ${ms(of("put"))} for the backup's bytes`);
console.log(`an idle sandbox: ${idle.toFixed(1)} MB; at most 10 are wanted`);
printResult({
  exec_over_floor_ms_p50: exec - floor,
  read_ratio: of("bareRead") / of("read"),
  write_ratio: of("bareWrite") / of("write"),
  backup_ratio: of("backup") / of("handBackup"),
  restore_ratio: of("restore") / of("handRestore"),
  backup_ratio_without_bucket: (of("backup") - of("put")) / of("handBackup"),
  idle_mb: idle,
});
