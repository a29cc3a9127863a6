/** One class for each instance type: the platform fixes the type by class, and keys outbound handlers by class name. */
import { throughTheDoor } from "./egress-handler.ts";
import { SandboxDurableObject } from "./sandbox-durable-object.ts";

export class SandboxLiteDurableObject extends SandboxDurableObject {
  static override readonly instanceType = "lite";
  // A static field would shadow the library's setter.
  static {
    SandboxLiteDurableObject.outbound = throughTheDoor;
  }
}

export class SandboxBasicDurableObject extends SandboxDurableObject {
  static override readonly instanceType = "basic";
  static {
    SandboxBasicDurableObject.outbound = throughTheDoor;
  }
}

export class SandboxStandard1DurableObject extends SandboxDurableObject {
  static override readonly instanceType = "standard-1";
  static {
    SandboxStandard1DurableObject.outbound = throughTheDoor;
  }
}

export class SandboxStandard2DurableObject extends SandboxDurableObject {
  static override readonly instanceType = "standard-2";
  static {
    SandboxStandard2DurableObject.outbound = throughTheDoor;
  }
}

export class SandboxStandard3DurableObject extends SandboxDurableObject {
  static override readonly instanceType = "standard-3";
  static {
    SandboxStandard3DurableObject.outbound = throughTheDoor;
  }
}

export class SandboxStandard4DurableObject extends SandboxDurableObject {
  static override readonly instanceType = "standard-4";
  static {
    SandboxStandard4DurableObject.outbound = throughTheDoor;
  }
}
