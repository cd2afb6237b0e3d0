# require_system_package(NAME deb): find_package(NAME), or stop with the one command that installs it.
function(require_system_package name deb)
  find_package(${name} QUIET)
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "COMET needs the system package ${deb}. Install it with: apt-get install ${deb}")
  endif()
endfunction()
