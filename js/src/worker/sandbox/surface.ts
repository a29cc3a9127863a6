/** Which methods a client may call, by name: the lifecycle's verbs, the SDK's public methods, and those of its sessions. */

/** What our classes answer themselves. */
export const lifecycleMethods = [
  "start",
  "sleep",
  "stop",
  "restart",
  "kill",
  "destroy",
  "setEnvVars",
  "setSleepAfter",
  "setKeepAlive",
  "__describe",
] as const;

/** The public methods of the SDK's `Sandbox`, fenced ones too: those answer with what to use instead. */
export const sdkMethods = [
  "exec",
  "execStream",
  "startProcess",
  "listProcesses",
  "getProcess",
  "killProcess",
  "killAllProcesses",
  "cleanupCompletedProcesses",
  "getProcessLogs",
  "streamProcessLogs",
  "gitCheckout",
  "mkdir",
  "writeFile",
  "deleteFile",
  "renameFile",
  "moveFile",
  "readFile",
  "readFileStream",
  "listFiles",
  "exists",
  "watch",
  "checkChanges",
  "createSession",
  "getSession",
  "deleteSession",
  "createCodeContext",
  "runCode",
  "runCodeStream",
  "listCodeContexts",
  "deleteCodeContext",
  "createBackup",
  "restoreBackup",
  "callTunnels",
  "getContainerPlacementId",
  "setContainerTimeouts",
  "setLabels",
  "getState",
  "getExposedPorts",
  "isPortExposed",
  "mountBucket",
  "unmountBucket",
  "exposePort",
  "unexposePort",
  "setTransport",
  "configure",
] as const;

/** What an `ExecutionSession` offers; each is answered by the session itself inside the object. */
export const sessionMethods = [
  "exec",
  "execStream",
  "startProcess",
  "listProcesses",
  "getProcess",
  "killProcess",
  "killAllProcesses",
  "cleanupCompletedProcesses",
  "getProcessLogs",
  "streamProcessLogs",
  "writeFile",
  "readFile",
  "readFileStream",
  "watch",
  "checkChanges",
  "mkdir",
  "deleteFile",
  "renameFile",
  "moveFile",
  "listFiles",
  "exists",
  "gitCheckout",
  "setEnvVars",
  "createCodeContext",
  "runCode",
  "runCodeStream",
  "listCodeContexts",
  "deleteCodeContext",
] as const;

const callable: ReadonlySet<string> = new Set<string>([...lifecycleMethods, ...sdkMethods]);
const callableInSession: ReadonlySet<string> = new Set<string>(sessionMethods);

export function isCallable(method: string): boolean {
  return callable.has(method);
}

export function isSessionCallable(method: string): boolean {
  return callableInSession.has(method);
}
