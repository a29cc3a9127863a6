/** What leaves a container: connections for the relay, with their destination; nothing else, and that at once. */
import { once } from "node:events";
import { createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isRoot, type Relayed, start, type TestContainer } from "./launcher-support.ts";

const kinds = isRoot ? [{ ordinary: false }, { ordinary: true }] : [{ ordinary: false }];

/** Answers an HTTP request with the line that introduced its connection. */
function introduce({ socket, introduction, received }: Relayed): void {
  if (!received().includes("\r\n\r\n")) return;
  const body = JSON.stringify(introduction);
  socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
}

describe.each(kinds)("the network of a container (ordinary user: $ordinary)", ({ ordinary }) => {
  let box: TestContainer;
  beforeAll(async () => {
    box = await start({ ordinary, ports: [8443, "db.example:5432"] });
    box.onRelayed = introduce;
  });
  afterAll(() => box.dispose());

  const curl = async (url: string, more = "") =>
    JSON.parse(await box.run(`curl -sS -m 20 --globoff ${more} '${url}'`)) as Relayed["introduction"];

  test("connections come with the destination they were meant for, and its name", async () => {
    const named = await curl("http://Api.Example.COM/", "-4");
    expect(named).toMatchObject({ kind: "tcp", port: 80, host: "api.example.com" });
    expect(named.destination).toMatch(/^198\.1[89]\./);
    const overSix = await curl("http://api.example.com/", "-6");
    expect(overSix).toMatchObject({ port: 80, host: "api.example.com" });
    expect(overSix.destination).toMatch(/^fd69:7465:7261:7465::/);
    expect(await curl("http://203.0.113.7/")).toEqual({ kind: "tcp", destination: "203.0.113.7", port: 80 });
    expect(await curl("http://[2001:db8::7]/")).toEqual({
      kind: "tcp",
      destination: "2001:db8::7",
      port: 80,
    });
    expect(await curl("http://169.254.169.254/")).toMatchObject({ destination: "169.254.169.254" });
    expect(await curl("http://one.example:443/")).toMatchObject({ port: 443, host: "one.example" });
    expect(await curl("http://two.example:8443/")).toMatchObject({ port: 8443, host: "two.example" });
    expect(await curl("http://db.example:5432/")).toMatchObject({ port: 5432, host: "db.example" });
    expect(await curl("http://0x7f000002.example/")).toMatchObject({ host: "0x7f000002.example" });
  });

  test("every other destination is refused at once", async () => {
    const program = `
import socket, time
def attempt(family, kind, address):
    started = time.monotonic()
    try:
        s = socket.socket(family, kind)
        s.settimeout(10)
        s.connect(address)
        if kind == socket.SOCK_DGRAM:
            s.send(b"x")
            s.recv(1)
        result = "OPEN"
    except OSError as error:
        result = type(error).__name__
    print(result, "slow" if time.monotonic() - started > 3 else "fast")
four, six = socket.AF_INET, socket.AF_INET6
tcp, udp = socket.SOCK_STREAM, socket.SOCK_DGRAM
for port in (1, 22, 25, 53, 81, 444, 3000, 8080, 65535):
    attempt(four, tcp, ("203.0.113.9", port))
    attempt(six, tcp, ("2001:db8::9", port))
for address in (("8.8.8.8", 53), ("1.1.1.1", 443), ("203.0.113.9", 80), ("255.255.255.255", 67), ("224.0.0.251", 5353)):
    attempt(four, udp, address)
attempt(six, udp, ("2001:4860:4860::8888", 53))
attempt(six, udp, ("ff02::1%lo", 5353))
`;
    const lines = (await box.run(`python3 - <<'EOF'\n${program}\nEOF`)).split("\n");
    expect(lines).toHaveLength(25);
    for (const line of lines) expect(line).toMatch(/^(ConnectionRefusedError|PermissionError|OSError) fast$/);
  });

  test("raw, packet and virtual machine sockets are not to be had", async () => {
    const program = `
import socket
for family, kind, protocol in ((2, 3, 1), (2, 3, 255), (10, 3, 58), (17, 3, 3), (40, 1, 0), (38, 5, 0), (16, 3, 12), (31, 3, 0)):
    try:
        s = socket.socket(family, kind, protocol)
        if family == 16:
            s.bind((0, 0))
            s.send(b"\\\\x14\\\\0\\\\0\\\\0\\\\x01\\\\x0a\\\\x05\\\\0" + bytes(12))
            s.settimeout(1)
            print("EPERM" if s.recv(64)[16] != 0 else "DONE")
        else:
            print("OPEN")
    except OSError as error:
        print("refused")
`;
    const lines = (await box.run(`python3 - <<'EOF'\n${program.replaceAll("\\\\", "\\")}\nEOF`)).split("\n");
    expect(lines).toHaveLength(8);
    for (const line of lines) expect(line).toMatch(/^(refused|EPERM)$/);
  });

  test("the machine's loopback and the relay itself are out of reach", async () => {
    const server = createServer((socket) => socket.end("reached"));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no address");
    for (const host of [
      "127.0.0.1",
      "localhost",
      "0.0.0.0",
      "127.1.2.3",
      "2130706433",
      "[::ffff:127.0.0.1]",
      "10.0.2.2",
    ]) {
      const result = await box.exec(`curl -sS -m 5 --globoff http://${host}:${address.port}/`);
      expect(result.exitCode, host).not.toBe(0);
    }
    server.close();
    const before = box.relayed.length;
    const ports = await box.run(
      'awk \'NR>1 && $4=="0A" {split($2,a,":"); print strtonum("0x" a[2])}\' /proc/net/tcp /proc/net/tcp6 2>/dev/null || ' +
        "python3 -c \"import re;[print(int(l.split()[1].split(':')[1],16)) for f in ('tcp','tcp6') for l in open('/proc/net/'+f) if l.split()[3]=='0A']\"",
    );
    for (const port of ports.split("\n").filter((one) => one !== "53" && one !== "")) {
      await box.exec(`curl -sS -m 3 http://127.0.0.1:${port}/; curl -sS -m 3 'http://[::1]:${port}/'`);
    }
    expect(box.relayed.length).toBe(before);
  });

  test("loopback is left to the container's own servers, port 80 too", async () => {
    const before = box.relayed.length;
    await box.run("cd /tmp && echo own > own.txt && (python3 -m http.server 80 >/dev/null 2>&1 &)");
    for (const host of ["127.0.0.1", "localhost", "box", "127.9.9.9", "198.19.255.254"]) {
      expect(
        await box.run(`curl -sS --retry 20 --retry-connrefused --retry-delay 1 http://${host}/own.txt`),
      ).toBe("own");
    }
    expect(box.relayed.length).toBe(before);
    expect(await curl("http://still.example/")).toMatchObject({ host: "still.example" });
  });

  test("the resolver answers every name, and takes no nonsense", async () => {
    expect(await box.run("getent ahostsv4 some.name.that.is.not | head -1")).toMatch(
      /^198\.1[89]\.\d+\.\d+\s/,
    );
    expect(await box.run("getent ahostsv4 a.localhost | head -1")).toMatch(/^127\.0\.0\.1\s/);
    const address = await box.run("getent ahostsv4 back.example | awk '{print $1; exit}'");
    expect(await box.run(`getent hosts ${address}`)).toContain("back.example");
    const program = `
import socket, struct
def ask(data, tcp=False):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
    s.settimeout(2)
    s.connect(("127.0.0.53", 53))
    s.send(struct.pack(">H", len(data)) + data if tcp else data)
    try:
        answer = s.recv(4096)
        return answer[2:] if tcp else answer
    except TimeoutError:
        return b""
def query(name, kind, count=1):
    labels = b"".join(bytes([len(one)]) + one for one in name.split(b".")) + b"\\0"
    return struct.pack(">HHHHHH", 7, 0x100, count, 0, 0, 0) + labels + struct.pack(">HH", kind, 1)
def code(answer): return answer[3] & 15
def answers(answer): return answer[7]
a = ask(query(b"x.example", 1)); print(code(a), answers(a))
a = ask(query(b"x.example", 1), tcp=True); print(code(a), answers(a))
a = ask(query(b"x.example", 15)); print(code(a), answers(a))
a = ask(query(b"x.example", 65)); print(code(a), answers(a))
a = ask(query(b'a"b.example', 1)); print(code(a), answers(a))
print(code(ask(query(b"x.example", 1, 2))))
print(code(ask(query(b"x.example", 1)[:-3])))
print(len(ask(b"junk")))
print(code(ask(b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"\\xc0\\x0c" * 100)))
a = ask(query(b"alive.example", 1)); print(code(a), answers(a))
`;
    expect(await box.run(`python3 - <<'EOF'\n${program}\nEOF`)).toBe(
      "0 1\n0 1\n0 0\n0 0\n3 0\n1\n1\n0\n1\n0 1",
    );
  });

  test("bytes pass both ways, as they are, with half-closes", async () => {
    const megabytes = 64;
    box.onRelayed = () => undefined;
    const pending = box.run(
      `python3 - <<'EOF'
import socket, hashlib
s = socket.create_connection(("bulk.example", 80))
data = bytes(range(256)) * 4096
sent = hashlib.sha256()
for _ in range(${megabytes}):
    s.sendall(data)
    sent.update(data)
s.shutdown(socket.SHUT_WR)
got = hashlib.sha256()
count = 0
while chunk := s.recv(1 << 16):
    got.update(chunk)
    count += len(chunk)
print(count, got.hexdigest() == sent.hexdigest())
EOF`,
    );
    await box.until(() => box.relayed.some(({ introduction }) => introduction.host === "bulk.example"));
    const connection = box.relayed.find(({ introduction }) => introduction.host === "bulk.example");
    if (connection === undefined) throw new Error("not relayed");
    await once(connection.socket, "end");
    connection.socket.end(connection.received());
    expect(await pending).toBe(`${megabytes << 20} True`);
    box.onRelayed = introduce;
  });

  test("a host that is away refuses at once", async () => {
    const other = await start({ id: "away", ordinary });
    try {
      await other.run(`true`);
      await other.closeEgress();
      const result = await other.exec("time -p curl -sS -m 10 http://x.example/");
      expect(result.exitCode).toBeGreaterThan(0);
      expect(Number(/real ([\d.]+)/.exec(result.stderr)?.[1])).toBeLessThan(5);
    } finally {
      await other.dispose();
    }
  });
});
