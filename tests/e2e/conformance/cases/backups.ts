/** Backups to and from the R2 binding, and buckets that this engine does not mount. */
import assert from "node:assert/strict";
import { type Cases, client, object, refuses } from "../case.ts";

const unmounted = {
  name: "Error",
  code: "mount_bucket_unsupported",
  message: /buckets are not mounted on the embedded engine .*createBackup/,
};

const noMount = { name: "InvalidMountConfigError", code: "INVALID_MOUNT_CONFIG" };

export const backups: Cases = {
  "Sandbox.createBackup": {
    "what the folder holds, without what is excluded or ignored": client(async ({ sandbox, env }) => {
      const dir = "/workspace/backed up";
      await sandbox.exec(
        `mkdir -p '${dir}/sub' && cd '${dir}' && echo kept > kept && echo log > a.log && echo out > ignored` +
          " && echo ignored > .gitignore && git init -q . && ln -s ../kept sub/link && chmod 750 sub; cd /workspace",
      );
      const backup = await sandbox.createBackup({
        dir,
        name: "one",
        ttl: 600,
        gitignore: true,
        excludes: ["*.log"],
        localBucket: true,
        compression: { format: "gzip", threads: 1 },
      });
      assert.equal(backup.dir, dir);
      assert.equal(backup.localBucket, true);
      const { objects } = await env.BACKUP_BUCKET.list({ prefix: `backups/${backup.id}/` });
      assert.deepEqual(objects.map(({ key }) => key.split("/").at(-1)).toSorted(), [
        "data.sqsh",
        "meta.json",
      ]);
      await sandbox.exec(`rm -rf '${dir}'`);
      await sandbox.restoreBackup(backup);
      const found = await sandbox.exec(
        `cd '${dir}' && find . -path ./.git -prune -o -print | sort; cat sub/link; stat -c %a sub; cd /workspace`,
      );
      assert.equal(found.stdout, ".\n./.gitignore\n./kept\n./sub\n./sub/link\nkept\n750\n");
    }),
    "a folder elsewhere, a name and a lifetime that are none": object(async (self) => {
      const invalid = { name: "InvalidBackupConfigError", code: "INVALID_BACKUP_CONFIG" };
      await refuses(() => self.createBackup({ dir: "/etc", localBucket: true }), invalid);
      await refuses(() => self.createBackup({ dir: "/workspace", ttl: -1, localBucket: true }), invalid);
      await refuses(
        () => self.createBackup({ dir: "/workspace", name: "x".repeat(300), localBucket: true }),
        invalid,
      );
    }),
    "without the binding's mode, the keys that presigned URLs need are named": object(async (self) => {
      await refuses(() => self.createBackup({ dir: "/workspace" }), {
        name: "InvalidBackupConfigError",
        code: "INVALID_BACKUP_CONFIG",
        message: /R2_ACCESS_KEY_ID/,
      });
    }),
    "the application's own reading and writing of the bucket stays its own": object(async (self, { env }) => {
      const bucket = env.BACKUP_BUCKET;
      await self.exec("mkdir -p own && echo own > own/file");
      const { id } = await self.createBackup({ dir: "/workspace/own", localBucket: true });
      const archive = await bucket.get(`backups/${id}/data.sqsh`);
      assert(archive?.body);
      const first: { value?: Uint8Array } = await archive.body.getReader().read();
      // The magic of squashfs.
      assert.equal(new TextDecoder().decode(first.value?.slice(0, 4)), "hsqs");
      const { readable, writable } = new FixedLengthStream(4);
      const writer = writable.getWriter();
      const written = writer.write(new TextEncoder().encode("mine")).then(() => writer.close());
      await bucket.put("backups/mine/data.sqsh", readable);
      await written;
      assert.equal(await (await bucket.get("backups/mine/data.sqsh"))?.text(), "mine");
    }),
    "a folder that is not there": object(async (self) => {
      await refuses(() => self.createBackup({ dir: "/workspace/none", localBucket: true }), {
        name: "BackupCreateError",
        code: "BACKUP_CREATE_FAILED",
      });
    }),
  },
  "Sandbox.restoreBackup": {
    "in another sandbox, over the files of the same names, as the SDK extracts it": client(
      async ({ sandbox, another }) => {
        await sandbox.exec("mkdir -p moved && echo from > moved/file");
        const backup = await sandbox.createBackup({ dir: "/workspace/moved", localBucket: true });
        const other = another("restored");
        await other.exec("mkdir -p moved && echo old > moved/file && echo old > moved/old");
        const result = await other.restoreBackup(backup);
        assert.deepEqual(result, { success: true, dir: "/workspace/moved", id: backup.id });
        assert.equal((await other.exec("cat moved/*")).stdout, "from\nold\n");
        await other.destroy();
      },
    ),
    "an archive too large to be buffered is refused before anything is replaced; rpc streams it": object(
      async (self, { transport }) => {
        await self.exec(
          "mkdir -p large && head -c 21M /dev/urandom > large/file && sha256sum large/file > /tmp/large",
        );
        const backup = await self.createBackup({ dir: "/workspace/large", localBucket: true });
        await self.exec("echo later > large/file");
        if (transport === "rpc") {
          await self.restoreBackup(backup);
          assert.equal((await self.exec("sha256sum -c --quiet /tmp/large")).exitCode, 0);
          return;
        }
        const tooLarge = { name: "Error", code: "archive_too_large", message: /SANDBOX_TRANSPORT=rpc/ };
        await refuses(() => self.restoreBackup(backup), tooLarge);
        assert.equal((await self.exec("cat large/file")).stdout, "later\n");
        await refuses(() => self.restoreBackup(backup), tooLarge);
      },
    ),
    "a backup that is none": object(async (self) => {
      const id = crypto.randomUUID();
      await refuses(() => self.restoreBackup({ id, dir: "/workspace/x", localBucket: true }), {
        name: "BackupNotFoundError",
        code: "BACKUP_NOT_FOUND",
      });
      await refuses(() => self.restoreBackup({ id: "../x", dir: "/workspace/x", localBucket: true }), {
        name: "InvalidBackupConfigError",
        code: "INVALID_BACKUP_CONFIG",
      });
    }),
  },
  "Sandbox.mountBucket": {
    "is refused, and says what to use": object(async (self) => {
      await refuses(() => self.mountBucket("BACKUP_BUCKET", "/mnt/bucket", { localBucket: true }), unmounted);
    }),
  },
  "Sandbox.unmountBucket": {
    "there is none to unmount": object(async (self) => {
      await refuses(() => self.unmountBucket("/mnt/bucket"), {
        ...noMount,
        message: /\/mnt\/bucket/,
      });
    }),
  },
  "ExecutionSession.createBackup": {
    "of the sandbox's folder": client(async ({ sandbox }) => {
      const session = await sandbox.createSession({ id: "backing" });
      await session.exec("mkdir -p session-backup && echo 1 > session-backup/file");
      const backup = await session.createBackup({ dir: "/workspace/session-backup", localBucket: true });
      assert.match(backup.id, /^[0-9a-f-]{36}$/);
    }),
  },
  "ExecutionSession.restoreBackup": {
    "into the sandbox's folder": client(async ({ sandbox }) => {
      const session = await sandbox.createSession({ id: "restoring" });
      await session.exec("mkdir -p session-restore && echo 1 > session-restore/file");
      const backup = await session.createBackup({ dir: "/workspace/session-restore", localBucket: true });
      await session.exec("echo 2 > session-restore/file");
      await session.restoreBackup(backup);
      assert.equal((await session.exec("cat session-restore/file")).stdout, "1\n");
    }),
  },
  "ExecutionSession.mountBucket": {
    "is refused, and says what to use": object(async (self) => {
      const session = await self.createSession({ id: "mounting" });
      await refuses(
        () => session.mountBucket("BACKUP_BUCKET", "/mnt/bucket", { localBucket: true }),
        unmounted,
      );
    }),
  },
  "ExecutionSession.unmountBucket": {
    "there is none to unmount": object(async (self) => {
      const session = await self.createSession({ id: "unmounting" });
      await refuses(() => session.unmountBucket("/mnt/bucket"), noMount);
    }),
  },
};
