/** Ports of a sandbox: requests, WebSockets, previews and tunnels. */
import assert from "node:assert/strict";
import type { Process } from "@cloudflare/sandbox";
import { type Cases, client, object, refuses, socketOf, upgradeRequest, type World } from "../case.ts";
import { pageServer } from "./processes.ts";

/** Answers one text message with the path and the message; by Python's own library, which has no WebSocket. */
const echoServer = `import socket, hashlib, base64, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("up", flush=True)
while True:
    peer, _ = server.accept()
    head = b""
    while b"\\r\\n\\r\\n" not in head: head += peer.recv(4096)
    key = [line.split(b": ", 1)[1] for line in head.split(b"\\r\\n") if line.lower().startswith(b"sec-websocket-key")][0]
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    peer.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + b"\\r\\n\\r\\n")
    frame = peer.recv(4096)
    mask = frame[2:6]
    text = head.split(b" ")[1] + b" " + bytes(byte ^ mask[at % 4] for at, byte in enumerate(frame[6:]))
    peer.sendall(bytes([0x81, len(text)]) + text)
    peer.recv(4096)
    peer.close()
`;

async function withServer(
  { sandbox }: World,
  command: string,
  ready: (process: Process) => Promise<unknown>,
  use: () => Promise<void>,
): Promise<void> {
  const process = await sandbox.startProcess(command);
  try {
    await ready(process);
    await use();
  } finally {
    await process.kill();
  }
}

/** A page at `/page.txt` on the port, while the case runs. */
async function withPage(world: World, port: number, use: () => Promise<void>): Promise<void> {
  await world.sandbox.exec("mkdir -p /srv/page && echo the page > /srv/page/page.txt");
  const ready = (process: Process) => process.waitForPort(port, { path: "/page.txt", timeout: 20_000 });
  await withServer(world, pageServer(port, "/srv/page"), ready, use);
}

const onlyRpc = { name: "Error", message: /RPC transport/i };

export const ports: Cases = {
  "Sandbox.wsConnect": {
    "a WebSocket to a server inside": client(async (world) => {
      const { sandbox } = world;
      await sandbox.writeFile("/tmp/echo.py", echoServer);
      const ready = (process: Process) => process.waitForLog("up", 20_000);
      await withServer(world, "python3 /tmp/echo.py 8110", ready, async () => {
        const response = await sandbox.wsConnect(upgradeRequest("http://sandbox/path"), 8110);
        const { socket, next } = socketOf(response);
        socket.send("hello");
        assert.equal(await next((all) => all.length > 0), "/path hello");
        socket.close(1000, "seen");
      });
    }),
    "the control port is refused, and so is a call that has no stub": object(async (self, { sandbox }) => {
      const request = upgradeRequest("http://sandbox/");
      await refuses(() => sandbox.wsConnect(request, 3000), { name: "SandboxSecurityError" });
      await refuses(() => self.wsConnect(request, 8110), { name: "Error", message: /getSandbox/ });
    }),
  },
  "Sandbox.fetch": {
    "to the control server, and by its path to another port": client(async (world) => {
      const ping = await world.sandbox.fetch(new Request("http://sandbox/api/ping"));
      assert.match(await ping.text(), /pong/);
      await withPage(world, 8111, async () => {
        const answer = await world.sandbox.fetch(new Request("http://sandbox/proxy/8111/none"));
        assert.equal(answer.status, 404);
        assert.match(answer.headers.get("server") ?? "", /Python/);
        await answer.text();
      });
    }),
  },
  "Sandbox.containerFetch": {
    "an address with a port, and a request with one": object(async (self, world) => {
      await withPage(world, 8112, async () => {
        const address = await self.containerFetch("http://sandbox/page.txt", {}, 8112);
        assert.equal(await address.text(), "the page\n");
        const head = await self.containerFetch(
          new Request("http://sandbox/page.txt", { method: "HEAD" }),
          8112,
        );
        assert.equal(head.headers.get("content-length"), "9");
      });
    }),
    "a port that nobody listens on": object(async (self) => {
      const response = await self.containerFetch("http://sandbox/", {}, 8113);
      assert.equal(response.status, 500);
      assert.match(await response.text(), /not listening/i);
    }),
  },
  "Sandbox.exposePort": {
    "the URL leads to the port through proxyToSandbox": client(async (world) => {
      const { sandbox, sdk, env } = world;
      await withPage(world, 8114, async () => {
        const exposed = await sandbox.exposePort(8114, {
          hostname: "preview.test",
          name: "page",
          token: "my_token",
        });
        assert.deepEqual(exposed, {
          url: "https://8114-shared-my_token.preview.test/",
          port: 8114,
          name: "page",
        });
        const response = await sdk.proxyToSandbox(new Request(`${exposed.url}page.txt`), env);
        assert.equal(await response?.text(), "the page\n");
        const other = exposed.url.replace("my_token", "no_token");
        assert.equal((await sdk.proxyToSandbox(new Request(other), env))?.status, 404);
        await sandbox.unexposePort(8114);
      });
    }),
    "a domain and ports that cannot be exposed": object(async (self) => {
      await refuses(() => self.exposePort(8115, { hostname: "x.workers.dev" }), {
        name: "CustomDomainRequiredError",
        code: "CUSTOM_DOMAIN_REQUIRED",
      });
      await refuses(() => self.exposePort(3000, { hostname: "preview.test" }), {
        name: "SandboxSecurityError",
      });
    }),
  },
  "Sandbox.unexposePort": {
    "the URL leads nowhere then, and a second time changes nothing": client(async ({ sandbox, sdk, env }) => {
      const { url } = await sandbox.exposePort(8116, { hostname: "preview.test" });
      await sandbox.unexposePort(8116);
      await sandbox.unexposePort(8116);
      const response = await sdk.proxyToSandbox(new Request(url), env);
      assert.equal(response?.status, 404);
      assert.match((await response?.text()) ?? "", /INVALID_TOKEN/);
    }),
  },
  "Sandbox.getExposedPorts": {
    "those that lead somewhere now": client(async ({ sandbox }) => {
      await sandbox.exposePort(8117, { hostname: "preview.test", token: "listed" });
      const found = (await sandbox.getExposedPorts("preview.test")).filter(({ port }) => port === 8117);
      assert.deepEqual(found, [
        { url: "https://8117-shared-listed.preview.test/", port: 8117, status: "active" },
      ]);
      await sandbox.unexposePort(8117);
    }),
  },
  "Sandbox.isPortExposed": {
    "true while it is": client(async ({ sandbox }) => {
      assert.equal(await sandbox.isPortExposed(8118), false);
      await sandbox.exposePort(8118, { hostname: "preview.test" });
      assert.equal(await sandbox.isPortExposed(8118), true);
      await sandbox.unexposePort(8118);
      assert.equal(await sandbox.isPortExposed(8118), false);
    }),
  },
  "Sandbox.validatePortToken": {
    "true of the port's own": client(async ({ sandbox }) => {
      await sandbox.exposePort(8119, { hostname: "preview.test", token: "right" });
      assert.equal(await sandbox.validatePortToken(8119, "right"), true);
      assert.equal(await sandbox.validatePortToken(8119, "wrong"), false);
      assert.equal(await sandbox.validatePortToken(8120, "right"), false);
      await sandbox.unexposePort(8119);
    }),
  },
  "Sandbox.waitForPort": {
    "settles once it listens; its tries run out where nothing does": object(async (self, world) => {
      await withPage(world, 8121, async () => {
        assert((await self.waitForPort({ portToCheck: 8121 })) > 0);
      });
      await refuses(() => self.waitForPort({ portToCheck: 8122, retries: 2, waitInterval: 20 }), {
        name: "Error",
        message: /not listening/,
      });
    }),
  },
  "Sandbox.tunnels": {
    "hands out the object with the tunnels' methods": object(async (self) => {
      assert.deepEqual(
        (["get", "list", "destroy"] as const).map((name) => typeof self.tunnels[name]),
        ["function", "function", "function"],
      );
    }),
  },
  "Sandbox.callTunnels": {
    "is how a stub reaches them; another method's name is refused": object(async (self) => {
      assert.deepEqual(await self.callTunnels("list", []), []);
      await refuses(() => self.callTunnels("constructor", []), { name: "Error", message: /constructor/ });
    }),
  },
  "TunnelsHandler.get": {
    "a loopback URL that leads to the port, the same each time": client(async (world) => {
      const { sandbox, transport } = world;
      if (transport !== "rpc") return await refuses(() => sandbox.tunnels.get(8123), onlyRpc);
      await withPage(world, 8123, async () => {
        const tunnel = await sandbox.tunnels.get(8123);
        assert.match(tunnel.url, /^http:\/\/127\.0\.0\.1:\d+$/);
        assert.equal(tunnel.port, 8123);
        assert.equal(await (await fetch(`${tunnel.url}/page.txt`)).text(), "the page\n");
        assert.equal((await sandbox.tunnels.get(8123)).url, tunnel.url);
        await sandbox.tunnels.destroy(8123);
      });
    }),
    "as the first call of all, and when the session was closed meanwhile": object(
      async (self, { transport }) => {
        if (transport !== "rpc") return;
        const first = await self.tunnels.get(8124);
        self.client.disconnect();
        const second = await self.tunnels.get(8125);
        assert.notEqual(second.url, first.url);
        self.client.disconnect();
        assert.match((await self.tunnels.get(8124)).url, /^http:\/\/127\.0\.0\.1:\d+$/);
        await self.destroy();
      },
      "tunnel-first",
    ),
    "a port and a named tunnel that cannot be": object(async (self) => {
      await refuses(() => self.tunnels.get(3000), { name: "SandboxSecurityError" });
      await refuses(() => self.tunnels.get(8126, { name: "named" }), {
        name: "Error",
        message: /CLOUDFLARE_API_TOKEN/,
      });
    }),
  },
  "TunnelsHandler.list": {
    "those that there are": client(async ({ sandbox, transport }) => {
      if (transport !== "rpc") return assert.deepEqual(await sandbox.tunnels.list(), []);
      const tunnel = await sandbox.tunnels.get(8127);
      assert.deepEqual(
        (await sandbox.tunnels.list()).filter(({ port }) => port === 8127),
        [tunnel],
      );
      await sandbox.tunnels.destroy(tunnel);
    }),
  },
  "TunnelsHandler.destroy": {
    "its URL answers no more, and a second time changes nothing": client(async ({ sandbox, transport }) => {
      if (transport !== "rpc") return await sandbox.tunnels.destroy(8128);
      const tunnel = await sandbox.tunnels.get(8128);
      await sandbox.tunnels.destroy(8128);
      await sandbox.tunnels.destroy(8128);
      assert.deepEqual(
        (await sandbox.tunnels.list()).filter(({ port }) => port === 8128),
        [],
      );
      await assert.rejects(fetch(tunnel.url));
    }),
  },
};
