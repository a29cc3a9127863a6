import type { EgressPolicyDocument, RedirectResponse } from "./types.ts";

/** The core takes ASCII hosts only: what an internationalised name means is the platform's to say. */
const NON_ASCII = /[^\p{ASCII}]/u;
const URL_PARTS = /^([a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?)([^/?#:]*)(.*)$/isu;

/** The URL with its host in ASCII and every other byte as it was; unchanged where there is nothing to do. */
export function asciiHost(url: string): string {
  if (!NON_ASCII.test(url)) return url;
  const parts = URL_PARTS.exec(url);
  if (parts === null) return url;
  const [, before = "", host = "", after = ""] = parts;
  return before + asciiName(host) + after;
}

/** The policy with the host patterns of its rules in ASCII. */
export function asciiPolicy(policy: EgressPolicyDocument): EgressPolicyDocument {
  if (!NON_ASCII.test(JSON.stringify(policy))) return policy;
  const rules = policy.rules.map((rule) =>
    rule.hosts === undefined ? rule : { ...rule, hosts: rule.hosts.map(asciiPattern) },
  );
  return { ...policy, rules };
}

function asciiPattern(pattern: string): string {
  return pattern.startsWith("*.") ? `*.${asciiName(pattern.slice(2))}` : asciiName(pattern);
}

/** A name that the platform refuses stays as it is, for the core to refuse by name. */
function asciiName(host: string): string {
  if (!NON_ASCII.test(host)) return host;
  const url = URL.parse(`http://${host}`);
  return url === null ? host : url.hostname;
}

/** The response with its Location absolute and in ASCII, where it was not ASCII; unchanged otherwise. */
export function asciiLocation(response: RedirectResponse, base: string): RedirectResponse {
  const location = response.location ?? locationOf(response);
  if (location === undefined || !NON_ASCII.test(location)) return response;
  return { ...response, location: URL.parse(location, base)?.href ?? location };
}

function locationOf(response: RedirectResponse): string | undefined {
  return response.headers?.find(([name]) => name.toLowerCase() === "location")?.[1];
}
