# require_system_package(NAME deb [ARGS...]): find_package(NAME ARGS...), or stop with the one command
# that installs it. A macro: what find_package sets is the caller's.
macro(require_system_package name deb)
  find_package(${name} QUIET ${ARGN})
  if(NOT ${name}_FOUND)
    missing_system_package(${deb})
  endif()
endmacro()

function(missing_system_package deb)
  # The blank in front keeps CMake from breaking the line.
  message(FATAL_ERROR " COMET needs the system package ${deb}. Install it with: apt-get install ${deb}")
endfunction()
