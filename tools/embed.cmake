# Writes files into C arrays, so that they travel inside the library.
#   cmake -DOUT=x.c "-DIN=a.json;b.json" -P embed.cmake       a table of preset files
#   cmake -DOUT=x.c -DIN=page.css -DSYMBOL=name -P embed.cmake    one text: const char name[]
set(text "// Made by tools/embed.cmake from configs/; do not edit.\n")
set(table "")
set(files ${IN})
if(SYMBOL)
  file(READ ${files} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  file(WRITE ${OUT} "// Made by tools/embed.cmake from ${files}; do not edit.\n"
    "extern const char ${SYMBOL}[];\nconst char ${SYMBOL}[] = {${bytes} 0};\n")
  return()
endif()
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(APPEND text "static const char ${name}_json[] = {${bytes} 0};\n")
  string(APPEND table "    {\"${name}\", ${name}_json},\n")
endforeach()
string(APPEND text "#include \"train/presets.h\"\n"
  "const dc_preset_file dc_preset_files[] = {\n${table}    {0, 0}};\n")
file(WRITE ${OUT} "${text}")
