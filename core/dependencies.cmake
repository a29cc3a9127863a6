# Header libraries of the core: Debian's packages where they are installed, FetchContent elsewhere. They are copied to
# one folder of the build tree, since emcc breaks when it is pointed at /usr/include itself.
set(SANDBOXES_HEADERS "${CMAKE_BINARY_DIR}/include")

function(sandboxes_header name folder probe url)
  if(EXISTS "${SANDBOXES_HEADERS}/${probe}")
    return()
  endif()
  find_path(${name}_root "${probe}" PATHS /usr/include /usr/local/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  if(NOT ${name}_root)
    include(FetchContent)
    FetchContent_Declare(${name} URL "${url}")
    FetchContent_GetProperties(${name})
    if(NOT ${name}_POPULATED)
      FetchContent_Populate(${name})
    endif()
    file(GLOB_RECURSE found "${${name}_SOURCE_DIR}/*/${probe}" "${${name}_SOURCE_DIR}/${probe}")
    list(GET found 0 first)
    string(REGEX REPLACE "/${probe}$" "" ${name}_root "${first}")
  endif()
  file(COPY "${${name}_root}/${folder}" DESTINATION "${SANDBOXES_HEADERS}")
endfunction()

sandboxes_header(nlohmann nlohmann nlohmann/json.hpp
                 https://github.com/nlohmann/json/releases/download/v3.11.2/include.zip)
sandboxes_header(tl tl tl/expected.hpp https://github.com/TartanLlama/expected/archive/refs/tags/v1.0.0.tar.gz)
sandboxes_header(catch2 catch2 catch2/catch.hpp https://github.com/catchorg/Catch2/archive/refs/tags/v2.13.9.tar.gz)

add_library(sandboxes_headers INTERFACE)
target_include_directories(sandboxes_headers SYSTEM INTERFACE "${SANDBOXES_HEADERS}")
target_compile_definitions(sandboxes_headers INTERFACE JSON_NOEXCEPTION JSON_USE_IMPLICIT_CONVERSIONS=0)
if(EMSCRIPTEN)
  # NDEBUG would make simdjson force its accessors inline.
  target_compile_options(sandboxes_headers INTERFACE "SHELL:'-DJSON_ASSERT(x)=static_cast<void>(0)'")
endif()

set(simdjson_source "${PROJECT_SOURCE_DIR}/node_modules/@nozbe/simdjson/src")
if(NOT EXISTS "${simdjson_source}/simdjson.cpp")
  message(FATAL_ERROR "simdjson is missing: run scripts/setup.sh, or npm ci --ignore-scripts")
endif()
add_library(sandboxes_simdjson STATIC "${simdjson_source}/simdjson.cpp")
target_include_directories(sandboxes_simdjson SYSTEM PUBLIC "${simdjson_source}")
target_compile_definitions(sandboxes_simdjson PUBLIC SIMDJSON_EXCEPTIONS=0 SIMDJSON_DISABLE_DEPRECATED_API=1)
target_compile_options(sandboxes_simdjson PRIVATE -w $<IF:$<BOOL:${EMSCRIPTEN}>,-Os,-O2> -fno-exceptions -fno-rtti ${SANDBOXES_SMALL})
