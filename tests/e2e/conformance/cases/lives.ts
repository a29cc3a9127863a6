/** A container's life: starts, stops, alarms and what is due. */
import assert from "node:assert/strict";
import type { Sandbox } from "../../../../js/src/engine/sandbox.ts";
import { type Cases, client, eventually, object } from "../case.ts";

/**
 * The library calls onStop from its alarm, a moment after the end. Over rpc the SDK interrupts a call that comes in between,
 * with an error that says to retry it.
 */
function stopDelivered(self: Sandbox): Promise<void> {
  return eventually("onStop", async () => (await self.getState()).status === "stopped");
}

export const lives: Cases = {
  "Sandbox.start": {
    "starts the container, and onStart has run": object(async (self, _world, ctx) => {
      await self.start();
      assert.equal(ctx.container?.running, true);
      assert.notEqual(await ctx.storage.get("currentRuntimeIdentity"), undefined);
      assert.equal((await self.exec("echo up")).stdout, "up\n");
      await self.destroy();
    }, "started"),
    "with variables and an id of its own": object(async (self) => {
      await self.start({ envVars: { AT_START: "yes" } });
      assert.equal((await self.exec("echo $AT_START")).stdout, "yes\n");
      await self.destroy();
    }, "started-with"),
  },
  "Sandbox.startAndWaitForPorts": {
    "settles once the port answers": object(async (self) => {
      await self.startAndWaitForPorts({ ports: 3000 });
      assert.equal((await self.getState()).status, "healthy");
      await self.destroy();
    }, "ports"),
  },
  "Sandbox.getState": {
    "stopped, healthy, and stopped again": client(async ({ another }) => {
      const sandbox = another("states");
      assert.equal((await sandbox.getState()).status, "stopped");
      await sandbox.exec("true");
      assert.equal((await sandbox.getState()).status, "healthy");
      await sandbox.destroy();
      await eventually("the state after the end", async () =>
        (await sandbox.getState()).status.startsWith("stopped"),
      );
    }),
  },
  "Sandbox.stop": {
    "a signal ends it; the next call starts it anew": object(async (self, _world, ctx) => {
      await self.exec("touch /tmp/mark");
      const ended = ctx.container?.monitor().catch(() => undefined);
      await self.stop("SIGTERM");
      await ended;
      assert.equal(ctx.container?.running, false);
      await stopDelivered(self);
      assert.equal((await self.exec("ls /tmp/mark 2>/dev/null; echo anew")).stdout, "anew\n");
      await self.destroy();
    }, "stopped"),
  },
  "Sandbox.destroy": {
    "nothing is left, and the next call starts it anew": object(async (self, _world, ctx) => {
      await self.exec("touch /tmp/mark; kept=1");
      await Promise.all([self.destroy(), self.destroy()]);
      assert.equal(ctx.container?.running, false);
      await stopDelivered(self);
      assert.equal((await self.exec("ls /tmp/mark 2>/dev/null; echo [$kept]")).stdout, "[]\n");
      await self.destroy();
    }, "destroyed"),
  },
  "Sandbox.onStart": {
    "names the life that has begun": object(async (self, _world, ctx) => {
      await self.exec("true");
      const before = await ctx.storage.get<{ id: string }>("currentRuntimeIdentity");
      await self.onStart();
      const after = await ctx.storage.get<{ id: string }>("currentRuntimeIdentity");
      assert.notEqual(before?.id, after?.id);
      assert.match(after?.id ?? "", /^[0-9a-f-]{36}$/);
      await self.destroy();
    }, "on-start"),
  },
  "Sandbox.onStop": {
    "is called at once when the container crashes": object(async (self, _world, ctx) => {
      await self.exec("true");
      assert.notEqual(await ctx.storage.get("defaultSession"), undefined);
      ctx.container?.signal(9);
      await eventually("onStop", async () => (await ctx.storage.get("defaultSession")) === undefined);
      assert.equal((await self.exec("echo anew")).stdout, "anew\n");
      await self.destroy();
    }, "crashed"),
  },
  "Sandbox.onError": {
    "is told, and throws nothing": object(async (self) => {
      assert.equal(self.onError(new Error("told")), undefined);
    }),
  },
  "Sandbox.onActivityExpired": {
    "ends an idle container by the library's own alarm": client(async ({ another }) => {
      const sandbox = another("expires", { sleepAfter: "1s" });
      await sandbox.exec("touch /tmp/mark");
      await stopDelivered(sandbox);
      assert.equal((await sandbox.exec("ls /tmp/mark 2>/dev/null; echo anew")).stdout, "anew\n");
      await sandbox.destroy();
    }),
  },
  "Sandbox.renewActivityTimeout": {
    "the time begins again": object(async (self) => {
      await self.setSleepAfter("5m");
      const before = Date.now();
      self.renewActivityTimeout();
      const until: unknown = Reflect.get(self, "sleepAfterMs");
      assert(typeof until === "number" && until >= before + 300_000);
    }, "renewed"),
  },
  "Sandbox.schedule": {
    "after some seconds, or at a time": object(async (self) => {
      const later = await self.schedule(60, "setLabels", { later: "yes" });
      assert.equal(later.callback, "setLabels");
      assert.deepEqual(later.payload, { later: "yes" });
      const at = new Date(Date.now() + 120_000);
      assert.equal((await self.schedule(at, "setLabels")).time, Math.floor(at.getTime() / 1000));
      await assert.rejects(self.schedule(1, "nobody"), /this\.nobody is not a function/);
    }, "scheduled"),
  },
  "Sandbox.getSchedule": {
    "finds one by its id": object(async (self) => {
      const { taskId } = await self.schedule(60, "setLabels", { found: "yes" });
      assert.deepEqual((await self.getSchedule(taskId))?.payload, { found: "yes" });
      assert.equal(await self.getSchedule("nobody"), undefined);
    }, "scheduled"),
  },
  "Sandbox.listSchedules": {
    "by the method that is called": object(async (self) => {
      await self.schedule(60, "setKeepAlive", true);
      assert.deepEqual(
        (await self.listSchedules("setKeepAlive")).map(({ payload }) => payload),
        [true],
      );
      assert.deepEqual(await self.listSchedules("onStart"), []);
    }, "listed"),
  },
  "Sandbox.deleteSchedules": {
    "all of a method": object(async (self) => {
      const { taskId } = await self.schedule(60, "setLabels", { deleted: "yes" });
      self.deleteSchedules("setLabels");
      assert.equal(await self.getSchedule(taskId), undefined);
    }, "unscheduled"),
  },
  "Sandbox.alarm": {
    "calls what is due, once": object(async (self) => {
      const { taskId } = await self.schedule(0, "setLabels", { due: "yes" });
      await self.alarm();
      assert.deepEqual(self.labels, { due: "yes" });
      assert.equal(await self.getSchedule(taskId), undefined);
    }, "alarmed"),
  },
  "Sandbox.scheduleNextAlarm": {
    "the runtime's alarm rings then": object(async (self, _world, ctx) => {
      const before = Date.now();
      await self.scheduleNextAlarm(60_000);
      const at = await ctx.storage.getAlarm();
      assert(at !== null && at >= before + 60_000 && at < before + 70_000);
    }, "next-alarm"),
  },
};
