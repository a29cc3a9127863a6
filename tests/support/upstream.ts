/** HTTPS and HTTP servers of a test's own, that stand where a public name points, and what signs their certificates. */
import "reflect-metadata";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as x509 from "@peculiar/x509";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
x509.cryptoProvider.set(crypto);

export interface TlsIdentity {
  caPem: string;
  certPem: string;
  keyPem: string;
}

async function privateKeyPem(key: CryptoKey): Promise<string> {
  const bytes = await crypto.subtle.exportKey("pkcs8", key);
  if (!(bytes instanceof ArrayBuffer)) throw new TypeError("the key was not exported as bytes");
  const der = Buffer.from(bytes).toString("base64");
  return `-----BEGIN PRIVATE KEY-----\n${der.replace(/.{64}/g, "$&\n")}\n-----END PRIVATE KEY-----\n`;
}

async function keyPair(): Promise<CryptoKeyPair> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  if (!("privateKey" in keys)) throw new TypeError("the algorithm gave no key pair");
  return keys;
}

/** An authority, and a certificate by it for the names and addresses. */
export async function tlsIdentity(names: string[]): Promise<TlsIdentity> {
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 86_400_000) };
  const caKeys = await keyPair();
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    // Authorities of one name would be taken for each other.
    name: `CN=Test upstreams ${crypto.randomUUID()}`,
    keys: caKeys,
    signingAlgorithm: algorithm,
    ...validity,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
    ],
  });
  const keys = await keyPair();
  const certificate = await x509.X509CertificateGenerator.create({
    subject: `CN=${names[0] ?? "test"}`,
    issuer: ca.subject,
    publicKey: keys.publicKey,
    signingKey: caKeys.privateKey,
    signingAlgorithm: algorithm,
    ...validity,
    extensions: [
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({
          type: /^[\d.]+$|:/.test(value) ? ("ip" as const) : ("dns" as const),
          value,
        })),
      ),
    ],
  });
  return {
    caPem: `${ca.toString("pem")}\n`,
    certPem: certificate.toString("pem"),
    keyPem: await privateKeyPem(keys.privateKey),
  };
}

export interface Upstream extends AsyncDisposable {
  /** `127.0.0.1:port`, for the host's `upstreams` map. */
  address: string;
  port: number;
  caPem: string;
  caPath: string;
  close(): Promise<void>;
}

/** What the benchmarks ask of a server: a small answer, and as many megabytes as they name. */
export const benchListener: RequestListener = (request, response) => {
  const url = new URL(request.url ?? "/", "https://bench.test");
  if (url.pathname !== "/stream") {
    response.end("small\n");
    return;
  }
  const chunk = Buffer.alloc(1 << 20, "0123456789abcdef");
  let left = Number(url.searchParams.get("mb"));
  response.setHeader("content-type", "application/octet-stream");
  const write = () => {
    while (left > 0) {
      left--;
      if (!response.write(chunk)) {
        response.once("drain", write);
        return;
      }
    }
    response.end();
  };
  write();
};

/** An HTTPS server on loopback for the names; with `listener`, its behaviour. */
export async function startTlsUpstream(
  names: string[],
  listener: RequestListener = benchListener,
): Promise<Upstream> {
  const identity = await tlsIdentity(names);
  const server = createHttpsServer(
    { key: identity.keyPem, cert: identity.certPem, keepAliveTimeout: 30_000 },
    listener,
  );
  return await started(server, identity.caPem);
}

export async function startHttpUpstream(listener: RequestListener): Promise<Upstream> {
  return await started(createHttpServer(listener), "");
}

async function started(server: ReturnType<typeof createHttpServer>, caPem: string): Promise<Upstream> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const folder = mkdtempSync(join(tmpdir(), "upstream-"));
  const caPath = join(folder, "ca.pem");
  writeFileSync(caPath, caPem);
  const close = async () => {
    rmSync(folder, { recursive: true, force: true });
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { address: `127.0.0.1:${port}`, port, caPem, caPath, close, [Symbol.asyncDispose]: close };
}
