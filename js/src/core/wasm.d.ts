// What the build puts into dist/wasm; see bindings/CMakeLists.txt.

declare module "#wasm/core.factory.js" {
  interface CoreModule {
    HEAPU8: Uint8Array;
    HEAPU32: Uint32Array;
    _core_reserve(bytes: number): number;
    _core_call(index: number, used: number, hasBody: number): number;
    _core_call_fields(
      index: number,
      handle: number,
      count: number,
      textBytes: number,
      used: number,
      hasBody: number,
    ): number;
    _core_function_names(): number;
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
