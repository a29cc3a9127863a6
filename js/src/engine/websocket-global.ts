/** capnweb reads the constants of the global WebSocket, which Node has of its own from 22 on. */
import { WebSocket } from "ws";

if (!("WebSocket" in globalThis)) Object.assign(globalThis, { WebSocket });
