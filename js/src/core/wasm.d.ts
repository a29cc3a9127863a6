// What the build puts into dist/wasm; see bindings/CMakeLists.txt.

declare module "#wasm/core.factory.js" {
  interface CoreModule {
    HEAPU8: Uint8Array;
    HEAPU32: Uint32Array;
    reserve(bytes: number): number;
    call(index: number, used: number, hasBody: boolean): number;
    functionNames(): string;
  }
  interface CoreModuleOptions {
    instantiateWasm(
      imports: WebAssembly.Imports,
      receive: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
    ): object;
  }
  const createModule: (options: CoreModuleOptions) => Promise<CoreModule>;
  export default createModule;
}

declare module "#wasm/core.wasm" {
  const module: WebAssembly.Module;
  export default module;
}
