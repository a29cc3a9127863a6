/** What a container sees of the machine, and what it is allowed to ask of its kernel. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { binary, isRoot, ordinaryUid, start, type TestContainer } from "./launcher-support.ts";

const certificate = "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n";
const kinds = (isRoot ? [false, true] : [false]).flatMap((ordinary) => [
  { ordinary, waited: false },
  { ordinary, waited: true },
]);

describe.each(kinds)("a container (ordinary user: $ordinary, waited: $waited)", ({ ordinary, waited }) => {
  let box: TestContainer;
  beforeAll(async () => {
    box = await start({
      ordinary,
      waited,
      env: { GIVEN: "yes" },
      caCertificatePem: certificate,
      launcherEnv: { MACHINE_SECRET: "hunter2-of-the-machine" },
    });
  });
  afterAll(() => box.dispose());

  test("is root inside and nobody of the machine outside", async () => {
    expect(await box.run("id -u; id -un")).toBe("0\nroot");
    const status = readFileSync(`/proc/${box.pid}/status`, "utf8");
    const uids = /^Uid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/) ?? [];
    expect(uids).toHaveLength(4);
    for (const uid of uids) expect(Number(uid)).not.toBe(0);
    if (ordinary) expect(uids[0]).toBe(String(ordinaryUid));
  });

  test("sees its own processes only", async () => {
    const pids = (await box.run("ls /proc | grep -c '^[0-9]'")).trim();
    expect(Number(pids)).toBeLessThan(10);
    expect(await box.run("cat /proc/1/comm")).toContain("sandboxd");
    expect((await box.exec("cat /proc/1/environ")).stdout).not.toContain("hunter2");
    expect((await box.exec(`kill -0 ${process.pid}`)).exitCode).not.toBe(0);
  });

  test("has no descriptor that is not its own", async () => {
    // The session's two pipes, the standard streams and ls's own directory.
    const open = await box.run("bash -c 'ls -l /proc/self/fd' | grep -E 'socket|cgroup' | wc -l");
    expect(open).toBe("0");
    const shell = await box.run("ls -l /proc/$$/fd | grep -E 'socket|cgroup' | wc -l");
    expect(shell).toBe("0");
  });

  test("sees nothing else of the machine's files", async () => {
    const listed = await box.run("ls -a /root /home");
    expect(listed.split("\n").filter((line) => !/^(\.{0,2}|\/root:|\/home:)$/.test(line))).toEqual([]);
    expect(await box.run("cut -d: -f2 /etc/shadow | sort -u")).toBe("*");
    for (const path of [
      process.cwd(),
      box.directory,
      "/etc/ssl/private",
      "/etc/ssh",
      "/var/run/docker.sock",
    ]) {
      expect((await box.exec(`test -e '${path}'`)).exitCode, path).toBe(1);
    }
    expect(await box.run("ls /sys")).toBe("");
    expect((await box.exec("ls /dev/vda /dev/sda /dev/mem /dev/kmsg /dev/loop0 2>/dev/null")).stdout).toBe(
      "",
    );
  });

  test("knows nothing of the launcher's environment", async () => {
    expect(await box.run("env")).not.toContain("hunter2");
    expect(await box.run("echo $GIVEN $HOME $USER; hostname; pwd")).toBe("yes /root root\nbox\n/workspace");
    const found = await box.exec("cat /proc/*/environ | tr '\\0' '\\n' | grep hunter2");
    expect(found.exitCode).toBe(1);
  });

  test("writes to copies of the machine's programs", async () => {
    const name = `written-by-a-container-${process.pid}`;
    await box.run(
      `for d in /usr/bin /usr/local/lib /etc /opt /root /tmp /workspace; do echo x > $d/${name}; done`,
    );
    expect(await box.run(`cat /usr/bin/${name}`)).toBe("x");
    for (const directory of ["/usr/bin", "/usr/local/lib", "/etc", "/opt", "/tmp"]) {
      expect(readdirSync(directory)).not.toContain(name);
    }
    await box.run("rm /usr/bin/yes && ! test -e /usr/bin/yes");
    expect(readdirSync("/usr/bin")).toContain("yes");
  });

  test("trusts its own authority", async () => {
    expect(`${await box.run("cat /etc/cloudflare/certs/cloudflare-containers-ca.crt")}\n`).toBe(certificate);
    const bundle = await box.run("cat /etc/ssl/certs/ca-certificates.crt");
    expect(bundle.endsWith(certificate.trim())).toBe(true);
    expect(await box.run("stat -c %a /etc/ssl/certs/ca-certificates.crt")).toBe("644");
  });

  test("can neither mount nor make namespaces nor gain capabilities", async () => {
    for (const command of [
      "mount -t tmpfs none /mnt",
      "umount /proc",
      "unshare -U true",
      "unshare -n true",
      "nsenter -t 1 -n true",
      "chroot /proc/1/root true",
      "mknod /tmp/disk b 254 0",
      "date -s 2001-01-01",
      "hostname other",
      "sysctl -w kernel.core_pattern=x",
      "ip link add x type dummy",
    ]) {
      const result = await box.exec(`(${command}) 2>&1`);
      expect(result.exitCode, command).not.toBe(0);
    }
    const status = await box.run("cat /proc/self/status");
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
    expect(status).toMatch(/^Seccomp:\s+2$/m);
    const capabilities = BigInt(`0x${/^CapBnd:\s+(\S+)$/m.exec(status)?.[1]}`);
    const forbidden = {
      netAdmin: 12n,
      sysModule: 16n,
      sysRawio: 17n,
      sysPtrace: 19n,
      sysAdmin: 21n,
      bpf: 39n,
    };
    for (const [name, bit] of Object.entries(forbidden)) expect((capabilities >> bit) & 1n, name).toBe(0n);
  });

  test("is refused the kernel's dangerous calls", async () => {
    const program = `
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
calls = {"keyctl": 250, "bpf": 321, "perf_event_open": 298, "kexec_load": 246, "init_module": 175,
         "userfaultfd": 323, "io_uring_setup": 425, "clone3": 435, "open_tree": 428, "mount_setattr": 442, "setns": 308}
for name, number in calls.items():
    ctypes.set_errno(0)
    result = libc.syscall(number, 0, 0, 0, 0, 0)
    print(name, errno.errorcode[ctypes.get_errno()] if result < 0 else "done")
`;
    const lines = (await box.run(`python3 - <<'EOF'\n${program}\nEOF`)).split("\n");
    expect(lines).toHaveLength(11);
    for (const line of lines) expect(line).toMatch(/ (EPERM|ENOSYS)$/);
  });

  test("runs the programs that people come for", async () => {
    await box.run(
      "git init -q /workspace/r && cd /workspace/r && git commit -q --allow-empty -m x --author 'a <a@b>'".replace(
        "git commit",
        "git -c user.name=a -c user.email=a@b commit",
      ),
    );
    expect(await box.run("node -e 'console.log(require(\"os\").userInfo().username)'")).toBe("root");
    expect(await box.run("python3 -c 'import ssl,socket,threading; print(1)'")).toBe("1");
    expect(await box.run("bash -c 'sleep 0.01 & wait; echo $?'")).toBe("0");
    expect(await box.run("dpkg -s bash | head -1")).toBe("Package: bash");
    const control =
      "Package: own-one\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b>\\nDescription: x\\n";
    await box.run(`mkdir -p /tmp/p/DEBIAN /tmp/p/usr/lib/own && printf '${control}' > /tmp/p/DEBIAN/control`);
    await box.run("echo hi > /tmp/p/usr/lib/own/file && dpkg-deb -b /tmp/p /tmp/own.deb");
    // Only where there is a range of ids: dpkg gives files to users.
    if (!ordinary) expect(await box.run("dpkg -i /tmp/own.deb >&2 && cat /usr/lib/own/file")).toBe("hi");
  });
});

/** What a shell is and has, as far as commands can see. */
const aboutShells = [
  "env | sort",
  "grep -E 'Cap|Seccomp|NoNew|Groups|Sig[PBIC]|Umask' /proc/self/status",
  "ulimit -a",
  "cat /proc/self/cgroup",
  "readlink /proc/$$/fd/* >/tmp/fds; sed -E 's/s[0-9a-f]{8,}|:.*//' /tmp/fds",
  "declare -p | grep -vE '__sx_|EPOCH|SECONDS|RANDOM|BASHPID|PPID|LINENO|DIRSTACK|BASH_|HISTCMD|COMP_WORDBREAKS'",
  "shopt; set -o",
  "[[ h\u00e9llo == h?llo ]] && echo characters || echo bytes; echo \"[$PS1]\"; hostname; printf '%(%Z)T'",
];

const environments: { env: Record<string, string>; waits: boolean }[] = [
  { env: { GIVEN: "yes" }, waits: true },
  { env: { TZ: "Asia/Tokyo", PATH: "/bin", HOME: "/tmp" }, waits: true },
  { env: { LANG: "en_US.UTF-8" }, waits: false },
  { env: { LC_ALL: "C" }, waits: false },
  { env: { PS1: "hey> " }, waits: false },
  { env: { IGNOREEOF: "1" }, waits: false },
  { env: { LD_LIBRARY_PATH: "/tmp" }, waits: false },
];
test.each(environments)(
  "the first session's shell in a prepared container with $env is as any other",
  async ({ env, waits }) => {
    const box = await start({ waited: true, env, caCertificatePem: certificate });
    try {
      const pid = (await box.exec("echo $$", "first")).stdout;
      if (waits) expect(pid).toBe("2\n");
      else expect(pid).not.toBe("2\n");
      for (const line of aboutShells) {
        const [first, second] = [await box.exec(line, "first"), await box.exec(line, "second")];
        expect(first, line).toMatchObject({ stdout: second.stdout, stderr: second.stderr });
      }
      const { stderr } = await box.exec("PS4='+\\h '; set -x; :", "first");
      expect(stderr).toBe(waits ? "++sandbox :\n" : "++box :\n");
    } finally {
      await box.dispose();
    }
  },
);

test("two containers do not see each other", async () => {
  const [one, other] = await Promise.all([start({ id: "one" }), start({ id: "other" })]);
  try {
    await one.run(
      "echo mine > /workspace/file; echo mine > /dev/shm/file; (sleep 300 &) ; exit 0".replace(
        "; exit 0",
        "",
      ),
    );
    expect((await other.exec("ls /workspace /dev/shm; ps ax | grep '[s]leep 300'")).stdout).not.toMatch(
      /file|sleep/,
    );
    if (isRoot) {
      const uid = (pid: number) => /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
      expect(uid(one.pid)).not.toBe(uid(other.pid));
    }
  } finally {
    await Promise.all([one.dispose(), other.dispose()]);
  }
});

test.each([
  ["", /first line must hold one JSON object/],
  ['{"id":"../x","runtimeDir":"/tmp","upperDir":"/tmp"}', /id must be/],
  ['{"id":"x","runtimeDir":"tmp","upperDir":"/tmp"}', /absolute paths/],
  ['{"id":"x","runtimeDir":"/tmp","upperDir":"/tmp","limits":{"pids":-1}}', /pids is out of range/],
])("a container that cannot be, %j, is refused with its reason", (line, reason) => {
  expect(refusal(`${line}\n{}`)).toMatch(reason);
});

test.each([
  ["[]", /second line must hold one JSON object/],
  ['{"hostname":"a b"}', /hostname is not a host label/],
  ['{"env":{"A":1}}', /env\.A must be a string/],
  ['{"env":{"A=B":"1"}}', /no process can have: A=B/],
  ['{"ports":["x:70000"]}', /want a port/],
])("a start that cannot be, %s, is refused with its reason", (line, reason) => {
  const folder = mkdtempSync(join(tmpdir(), "sandboxd-test-"));
  const launch = JSON.stringify({ id: "x", runtimeDir: folder, upperDir: folder });
  expect(refusal(`${launch}\n${line}`)).toMatch(reason);
  expect(readdirSync(folder)).toEqual(["control.sock"]);
  rmSync(folder, { recursive: true });
});

/** Why `sandboxd launch` refuses its standard input. */
function refusal(input: string): string {
  const { status, stdout } = spawnSync(binary, ["launch"], { input, encoding: "utf8" });
  expect(status).toBe(1);
  const last = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  expect(last).toMatchObject({ exit: 1, reason: "invalid_config" });
  return last.message;
}

test("doctor says what works and what to do about the rest", () => {
  const report = JSON.parse(execFileSync(binary, ["doctor", "--json"], { encoding: "utf8" }));
  expect(report.ok).toBe(true);
  const names = report.findings.map((finding: { name: string }) => finding.name);
  for (const name of [
    "namespaces",
    "overlay",
    "network_rules",
    "ids",
    "memory_limit",
    "process_limit",
    "disk_limit",
  ]) {
    expect(names).toContain(name);
  }
  for (const finding of report.findings) if (!finding.ok) expect(finding.advice, finding.name).not.toBe("");
});
