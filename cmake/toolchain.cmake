# Compiler, warnings, sanitizers and the compiler cache: the same for every room.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
set(CMAKE_CXX_FLAGS_ASAN "-O1 -g1 -fno-omit-frame-pointer")
set(CMAKE_CXX_FLAGS_TSAN "-O1 -g1 -fno-omit-frame-pointer")

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
                    -Wold-style-cast -Wimplicit-fallthrough -Werror)
# One object file whatever folder a worktree stands in: the cache is shared between worktrees.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
add_link_options(-fuse-ld=lld-19)

if(BATON_SANITIZE)
  add_compile_options(-fsanitize=${BATON_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BATON_SANITIZE})
  if(BATON_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
endif()

find_program(BATON_CCACHE ccache)
if(BATON_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${BATON_CCACHE})
endif()
