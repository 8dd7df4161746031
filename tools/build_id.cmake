# Writes build_id.h when the id has changed: cmake -DOUT=x.h -DSOURCE=dir -DVERSION=v -DWITH=compiler -P build_id.cmake
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty=+ --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "no commit")
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define DCRL_BUILD \"${VERSION} (${commit}, ${WITH})\"\n")
