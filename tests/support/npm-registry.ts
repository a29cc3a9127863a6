/** An npm registry of one package. */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Serves `name`@1.0.0, whose module exports `value`, under `https://<host>/`. */
export function npmRegistry(host: string, name: string, value: string): RequestListener {
  const folder = mkdtempSync(join(tmpdir(), "registry-"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name, version: "1.0.0", main: "index.js" }));
  writeFileSync(join(folder, "index.js"), `module.exports = ${JSON.stringify(value)};\n`);
  const packed = execFileSync("npm", ["pack", "--silent"], { cwd: folder, encoding: "utf8" }).trim();
  const tarball = readFileSync(join(folder, packed));
  rmSync(folder, { recursive: true });
  const version = {
    name,
    version: "1.0.0",
    main: "index.js",
    dist: {
      tarball: `https://${host}/${name}/-/${packed}`,
      shasum: createHash("sha1").update(tarball).digest("hex"),
      integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}`,
    },
  };
  const packument = { name, "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": version } };
  return (request, response) => {
    if (request.url?.endsWith(".tgz")) response.end(tarball);
    else if (request.url === `/${name}`)
      response.setHeader("content-type", "application/json").end(JSON.stringify(packument));
    else response.writeHead(404).end("{}");
  };
}
