import { once } from "node:events";
import { connect, createServer, type TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import { CertificateAuthority, generateLeafKeys } from "../../js/src/engine/certificates.ts";

const leafKeys = await generateLeafKeys();
const create = () => CertificateAuthority.create(leafKeys);

async function handshake(authority: CertificateAuthority, host: string, trusted: string): Promise<TLSSocket> {
  const server = createServer({
    SNICallback: (name, done) => {
      authority.contextFor(name).then(
        (context) => done(null, context),
        (error: Error) => done(error),
      );
    },
  });
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no address");
  const socket = connect({ host: "127.0.0.1", port: address.port, servername: host, ca: trusted });
  try {
    await once(socket, "secureConnect");
    return socket;
  } finally {
    socket.destroy();
    server.close();
  }
}

test("a client that trusts the authority accepts every name it signs for", async () => {
  const authority = await create();
  const long = `${"a".repeat(60)}.${"b".repeat(60)}.example`;
  for (const host of ["api.example.com", long]) {
    expect((await handshake(authority, host, authority.certificatePem)).authorized).toBe(true);
  }
});

test("an authority of another container is not trusted", async () => {
  const [one, other] = await Promise.all([create(), create()]);
  await expect(handshake(one, "api.example.com", other.certificatePem)).rejects.toThrow(/certificate/);
});

test("one name is signed for once, and a failed attempt is not kept", async () => {
  const authority = await create();
  expect(await authority.contextFor("a.example")).toBe(await authority.contextFor("a.example"));
});
