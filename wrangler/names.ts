/** The names that a deployment's parts have, from the name of its environment. One place, since config and bucket must agree. */

import { SandboxError } from "../js/src/core/error.ts";

export const defaultBaseName = "iterate-sandboxes";

/** R2 takes bucket names of 63 characters, and the bucket's is the Worker's with this at its end. */
const bucketSuffix = "-sandboxes";
const longestBucketName = 63;

export interface DeploymentNames {
  workerName: string;
  bucketName: string;
}

/** `preview_3` of `shop` is the Worker `shop-preview-3` with the bucket `shop-preview-3-sandboxes`. */
export function deploymentNames(environment: string, baseName: string = defaultBaseName): DeploymentNames {
  const workerName = `${baseName}-${environment.replace("_", "-")}`;
  const bucketName = `${workerName}${bucketSuffix}`;
  if (!/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(baseName) || bucketName.length > longestBucketName) {
    throw new SandboxError({
      code: "invalid_input",
      message:
        `The name "${baseName}" makes the Worker "${workerName}" and the bucket "${bucketName}". Names are lower-case ` +
        `letters, digits and inner dashes, and a bucket's has at most ${longestBucketName} characters: choose another --name.`,
      details: { got: baseName },
      status: 400,
      retryable: false,
    });
  }
  return { workerName, bucketName };
}
