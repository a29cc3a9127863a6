/** What is set on a sandbox, and what of it lasts. */
import assert from "node:assert/strict";
import type { Sandbox } from "../../../../js/src/engine/sandbox.ts";
import { type Cases, client, object, refuses } from "../case.ts";

/** What a request from inside is answered with; the status where it is the library's refusal. */
async function curl(self: Sandbox, host: string): Promise<string> {
  const { stdout } = await self.exec(`curl -s -w ' %{http_code}' http://${host}/x`);
  return stdout;
}

const answered = (word: string, host: string) => `${word} http://${host}/x 200`;
const disallowed = "Origin is disallowed 520";
const unknownHandler = { name: "Error", message: /"?nobody"?/ };

export const settings: Cases = {
  "Sandbox.configure": {
    "everything at once, and it lasts": object(async (self, _world, ctx) => {
      await self.configure({
        sandboxName: { name: "configured", normalizeId: true },
        sleepAfter: "7m",
        keepAlive: true,
        containerTimeouts: { instanceGetTimeoutMS: 20_000 },
        labels: { team: "one" },
      });
      const kept = await ctx.storage.get([
        "sandboxName",
        "normalizeId",
        "sleepAfter",
        "keepAliveEnabled",
        "labels",
      ]);
      assert.deepEqual(Object.fromEntries(kept), {
        sandboxName: "configured",
        normalizeId: true,
        sleepAfter: "7m",
        keepAliveEnabled: true,
        labels: { team: "one" },
      });
      assert.equal(self.sleepAfter, "7m");
    }, "configured"),
  },
  "Sandbox.setSandboxName": {
    "the first name stays": object(async (self, _world, ctx) => {
      await self.setSandboxName("first");
      await self.setSandboxName("second");
      assert.equal(await ctx.storage.get("sandboxName"), "first");
      assert.equal((await self.exec("true")).sessionId, "sandbox-first");
      await self.destroy();
    }, "named"),
  },
  "Sandbox.setSleepAfter": {
    "the time from the last call to the end": object(async (self, _world, ctx) => {
      await self.setSleepAfter("90s");
      assert.equal(await ctx.storage.get("sleepAfter"), "90s");
      assert.equal(self.sleepAfter, "90s");
    }, "sleeper"),
  },
  "Sandbox.setKeepAlive": {
    "an idle container stays while it is set": object(async (self, _world, ctx) => {
      await self.exec("true");
      await self.setKeepAlive(true);
      await self.onActivityExpired();
      assert.equal(ctx.container?.running, true);
      assert.equal((await self.exec("echo alive")).stdout, "alive\n");
      await self.setKeepAlive(false);
      const ended = ctx.container?.monitor().catch(() => undefined);
      await self.onActivityExpired();
      await ended;
      assert.equal(ctx.container?.running, false);
    }, "kept-alive"),
  },
  "Sandbox.setContainerTimeouts": {
    "within the SDK's bounds": object(async (self, _world, ctx) => {
      await self.setContainerTimeouts({ portReadyTimeoutMS: 20_000, waitIntervalMS: 100 });
      const kept = await ctx.storage.get<Record<string, number>>("containerTimeouts");
      assert.equal(kept?.portReadyTimeoutMS, 20_000);
      await refuses(() => self.setContainerTimeouts({ waitIntervalMS: 1 }), {
        name: "Error",
        message: /waitIntervalMS must be between 100-5000ms/,
      });
    }, "timeouts"),
  },
  "Sandbox.setTransport": {
    "each carries the next call, and the session lives through the change": object(async (self) => {
      await self.exec("kept=1");
      for (const transport of ["http", "websocket", "rpc"] as const) {
        await self.setTransport(transport);
        assert.equal(self.client.getTransportMode(), transport);
        assert.equal((await self.exec("echo $kept")).stdout, "1\n");
      }
      await self.destroy();
    }, "transports"),
  },
  "Sandbox.setLabels": {
    "for the next start": object(async (self, _world, ctx) => {
      await self.setLabels({ tenant: "a" });
      assert.deepEqual(await ctx.storage.get("labels"), { tenant: "a" });
      assert.deepEqual(self.labels, { tenant: "a" });
      assert.equal((await self.exec("echo started")).stdout, "started\n");
      await self.destroy();
    }, "labelled"),
  },
  "Sandbox.getContainerPlacementId": {
    "undefined before the first session, null where the platform names none": client(async ({ another }) => {
      const sandbox = another("placed");
      assert.equal(await sandbox.getContainerPlacementId(), undefined);
      await sandbox.exec("true");
      assert.equal(await sandbox.getContainerPlacementId(), null);
      await sandbox.destroy();
    }),
  },
  "Sandbox.setOutboundHandler": {
    "answers every request from inside": object(async (self) => {
      await self.setOutboundHandler("answer", { word: "caught" });
      assert.equal(await curl(self, "any.test"), answered("caught", "any.test"));
      await self.setOutboundHandler("answer");
      assert.equal(await curl(self, "any.test"), answered("answered", "any.test"));
      await refuses(() => self.setOutboundHandler("nobody"), unknownHandler);
      await self.destroy();
    }, "outbound"),
  },
  "Sandbox.setOutboundByHost": {
    "answers one host's requests": object(async (self) => {
      await self.setOutboundByHost("one.test", "answer", { word: "one" });
      await self.setOutboundByHost("*.many.test", "answer", { word: "many" });
      assert.equal(await curl(self, "one.test"), answered("one", "one.test"));
      assert.equal(await curl(self, "a.many.test"), answered("many", "a.many.test"));
      await refuses(() => self.setOutboundByHost("two.test", "nobody"), unknownHandler);
      await self.destroy();
    }, "by-host"),
  },
  "Sandbox.setOutboundByHosts": {
    "replaces them all": object(async (self) => {
      await self.setOutboundByHost("one.test", "answer", { word: "one" });
      await self.setOutboundByHosts({
        "two.test": { method: "answer", params: { word: "two" } },
        "three.test": "answer",
      });
      assert.equal(await curl(self, "two.test"), answered("two", "two.test"));
      assert.equal(await curl(self, "three.test"), answered("answered", "three.test"));
      assert.notEqual(await curl(self, "one.test"), answered("one", "one.test"));
      await self.destroy();
    }, "by-hosts"),
  },
  "Sandbox.removeOutboundByHost": {
    "the default is used again": object(async (self) => {
      await self.setOutboundHandler("answer", { word: "default" });
      await self.setOutboundByHost("one.test", "answer", { word: "one" });
      await self.removeOutboundByHost("one.test");
      assert.equal(await curl(self, "one.test"), answered("default", "one.test"));
      await self.destroy();
    }, "removed-host"),
  },
  "Sandbox.setAllowedHosts": {
    "no other host is reached": object(async (self) => {
      await self.setOutboundHandler("answer");
      await self.setAllowedHosts(["allowed.test", "*.allowed.test"]);
      assert.equal(await curl(self, "allowed.test"), answered("answered", "allowed.test"));
      assert.equal(await curl(self, "a.allowed.test"), answered("answered", "a.allowed.test"));
      assert.equal(await curl(self, "other.test"), disallowed);
      await self.destroy();
    }, "allowed"),
  },
  "Sandbox.allowHost": {
    "one host more": object(async (self) => {
      await self.setOutboundHandler("answer");
      await self.allowHost("one.test");
      await self.allowHost("two.test");
      assert.equal(await curl(self, "one.test"), answered("answered", "one.test"));
      assert.equal(await curl(self, "two.test"), answered("answered", "two.test"));
      assert.equal(await curl(self, "three.test"), disallowed);
      await self.destroy();
    }, "allow-host"),
  },
  "Sandbox.removeAllowedHost": {
    "one host less": object(async (self) => {
      await self.setOutboundHandler("answer");
      await self.setAllowedHosts(["one.test", "two.test"]);
      await self.removeAllowedHost("one.test");
      assert.equal(await curl(self, "one.test"), disallowed);
      assert.equal(await curl(self, "two.test"), answered("answered", "two.test"));
      await self.destroy();
    }, "remove-allowed"),
  },
  "Sandbox.setDeniedHosts": {
    "over every handler": object(async (self) => {
      await self.setOutboundHandler("answer");
      await self.setDeniedHosts(["denied.test"]);
      assert.equal(await curl(self, "denied.test"), disallowed);
      assert.equal(await curl(self, "other.test"), answered("answered", "other.test"));
      await self.destroy();
    }, "denied"),
  },
  "Sandbox.denyHost": {
    "one host more": object(async (self) => {
      await self.setOutboundHandler("answer");
      await self.denyHost("one.test");
      await self.denyHost("two.test");
      assert.equal(await curl(self, "one.test"), disallowed);
      assert.equal(await curl(self, "two.test"), disallowed);
      await self.destroy();
    }, "deny-host"),
  },
  "Sandbox.removeDeniedHost": {
    "one host less": object(async (self) => {
      await self.setOutboundHandler("answer");
      await self.setDeniedHosts(["one.test", "two.test"]);
      await self.removeDeniedHost("one.test");
      assert.equal(await curl(self, "one.test"), answered("answered", "one.test"));
      assert.equal(await curl(self, "two.test"), disallowed);
      await self.destroy();
    }, "remove-denied"),
  },
};
