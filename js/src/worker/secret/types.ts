/** What may be told about a secret; nothing of it comes from the material. */
export interface SecretDescription {
  path: string;
  /** Counts every `set` and `rotate`, from 1. */
  version: number;
  origins: string[];
  createdAt: string;
  updatedAt: string;
}

/** Text, or an object whose fields placeholders can name. */
export type SecretMaterial = string | { [field: string]: unknown };

export interface SecretReference {
  kind: "secret" | "platform";
  path: string;
  field?: string;
}
