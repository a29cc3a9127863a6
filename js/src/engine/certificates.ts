/**
 * The certificate authority of one container. The sandbox trusts its certificate; its key stays in the host's memory and
 * signs a certificate for each name that the sandbox opens a TLS connection to.
 */
import "reflect-metadata";
import { randomBytes } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const dayMs = 86_400_000;
/** Clocks inside and outside are one; this covers a client that runs with a shifted clock of its own. */
const backdateMs = dayMs;
/** A container lives for days at most; clients refuse leaf certificates of more than 825 days. */
const validityMs = 365 * dayMs;
/** A sandbox that walks through names must not grow the host's memory without end. */
const maxContexts = 512;

const authorityExtensions = [
  new BasicConstraintsExtension(true, 0, true),
  new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
];
const leafExtensions = [
  new BasicConstraintsExtension(false, undefined, true),
  new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
  new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
];

export class CertificateAuthority {
  readonly certificatePem: string;
  readonly #certificate: X509Certificate;
  readonly #caKeys: CryptoKeyPair;
  readonly #leafKeys: CryptoKeyPair;
  readonly #leafKeyPem: string;
  readonly #contexts = new Map<string, Promise<SecureContext>>();

  private constructor(certificate: X509Certificate, caKeys: CryptoKeyPair, leaf: LeafKeys) {
    this.#certificate = certificate;
    this.#caKeys = caKeys;
    this.#leafKeys = leaf.keys;
    this.#leafKeyPem = leaf.pem;
    this.certificatePem = `${certificate.toString("pem").trim()}\n`;
  }

  /** `leaf` are the keys of all names' certificates; each container's could have its own, if they did not take so long to make. */
  static async create(leaf: LeafKeys): Promise<CertificateAuthority> {
    const caKeys = await generateKeys();
    const certificate = await X509CertificateGenerator.createSelfSigned({
      name: "CN=Sandbox containers CA, O=iterate-sandboxes",
      serialNumber: serialNumber(),
      ...validity(),
      keys: caKeys,
      signingAlgorithm: algorithm,
      extensions: [...authorityExtensions, await SubjectKeyIdentifierExtension.create(caKeys.publicKey)],
    });
    return new CertificateAuthority(certificate, caKeys, leaf);
  }

  /** The TLS context that speaks for a name or a literal address. */
  contextFor(host: string): Promise<SecureContext> {
    const known = this.#contexts.get(host);
    if (known !== undefined) return known;
    const oldest = this.#contexts.keys().next();
    if (this.#contexts.size >= maxContexts && !oldest.done) this.#contexts.delete(oldest.value);
    const context = this.#mint(host);
    this.#contexts.set(host, context);
    context.catch(() => this.#contexts.delete(host));
    return context;
  }

  async #mint(host: string): Promise<SecureContext> {
    const certificate = await X509CertificateGenerator.create({
      // The name stands in the alternative names alone: a common name holds 64 characters at most.
      subject: "O=iterate-sandboxes egress",
      issuer: this.#certificate.subject,
      serialNumber: serialNumber(),
      ...validity(),
      publicKey: this.#leafKeys.publicKey,
      signingKey: this.#caKeys.privateKey,
      signingAlgorithm: algorithm,
      extensions: [
        new SubjectAlternativeNameExtension([{ type: isIP(host) === 0 ? "dns" : "ip", value: host }], true),
        ...leafExtensions,
        await AuthorityKeyIdentifierExtension.create(this.#certificate),
      ],
    });
    return createSecureContext({
      key: this.#leafKeyPem,
      cert: `${certificate.toString("pem")}\n${this.certificatePem}`,
      minVersion: "TLSv1.2",
    });
  }
}

/** A key pair, and its private key as TLS takes it. */
export interface LeafKeys {
  keys: CryptoKeyPair;
  pem: string;
}

async function generateKeys(): Promise<CryptoKeyPair> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  if (!("privateKey" in keys)) throw new TypeError("an elliptic curve gave no key pair");
  return keys;
}

export async function generateLeafKeys(): Promise<LeafKeys> {
  const keys = await generateKeys();
  const der = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
  if (!(der instanceof ArrayBuffer)) throw new TypeError("a private key was not exported as bytes");
  const lines = Buffer.from(der).toString("base64").replace(/.{64}/g, "$&\n").trimEnd();
  return { keys, pem: `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n` };
}

function validity(): { notBefore: Date; notAfter: Date } {
  const now = Date.now();
  return { notBefore: new Date(now - backdateMs), notAfter: new Date(now + validityMs) };
}

/** Positive and 16 bytes, as RFC 5280 asks. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("hex");
}
